// Package demand learns when Workspaces of a pool start, and says how many placeholders to keep so that the objective's share of
// them finds a warm place. It is pure: told of starts and of the time, it keeps a few hundred numbers for each pool (State).
//
// The rate of starts is a Gamma distribution for each hour of the week, from counts that fade by 15 % a week, with what the
// day and the hour of the day have in common as its prior; what came of late against what was expected corrects it. So the
// starts of a lead time are negative binomial, and what is not known adds places by itself (capacity.Orders). A placeholder is
// kept as long as it finds so many starts in each hour that it is idle: that number, which is one for all hours, is what gives
// the objective over the week, for the least of idle nodes. Starts come in bursts that no rate shows: each that finds no place
// moves the number, each other one moves it back, so that in the long run the share is the objective's, whatever the starts are like.
package demand
