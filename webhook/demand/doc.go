// Package demand learns when Workspaces of a pool start, and says how many placeholders to keep so that the objective's share of
// them finds a warm place. It is pure: told of starts and of the time, it keeps a few hundred numbers for each pool (State).
//
// The rate of starts is a Gamma distribution for each hour of the week, from counts that fade by 15 % a week, with what the
// day and the hour of the day have in common as its prior; what came of late against what was expected corrects it. So the
// starts of a lead time are negative binomial, and what is not known adds places by itself (capacity.Orders). Starts come in
// bursts that no rate shows: each that finds no place moves the quantile up, each other one down, so that in the long run
// their share is the objective's, whatever the starts are like.
package demand
