// Package spelling tells how close two words are, to find what a misspelt one was meant to be.
package spelling

// Edits counts the bytes to insert, delete or replace to make b of a (Levenshtein distance); ok is false if they are more
// than most. A word of hostile length costs nothing, because words of very different lengths are not compared.
func Edits(a, b string, most int) (edits int, ok bool) {
	if max(len(a)-len(b), len(b)-len(a)) > most {
		return 0, false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	edits = row[len(b)]
	return edits, edits <= most
}
