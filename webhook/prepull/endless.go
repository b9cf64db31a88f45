package prepull

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// longSleep is a sleep that is as bad as one without end: a pull is over when the command starts.
	longSleep = 10 * time.Minute
	// Commands come from users. What is longer, or shells within shells, is not judged.
	maxScript, maxShells = 4096, 4
)

// Endless is the part of a container's command that does not end, such as "sleep infinity". It is empty where the command
// ends, where the image's entry point decides, and where no one can tell without running it.
func Endless(c *corev1.Container) string {
	if len(c.Command) == 0 {
		return ""
	}
	return endless(slices.Concat(c.Command, c.Args), 0)
}

func endless(words []string, shells int) string {
	if len(words) == 0 || shells > maxShells {
		return ""
	}
	rest := words[1:]
	ends := true
	switch name := path.Base(words[0]); name {
	case "sleep":
		ends = !(sleepsFor(rest) >= longSleep.Seconds()) // also for no number
	case "tail":
		ends = !follows(rest)
	case "pause":
		ends = len(rest) > 0
	case "yes":
		ends = slices.ContainsFunc(rest, func(word string) bool { return strings.HasPrefix(word, "-") })
	case "exec", "nohup", "command", "busybox", "toybox":
		return endless(rest, shells+1)
	case "env":
		for len(rest) > 0 && strings.Contains(rest[0], "=") {
			rest = rest[1:]
		}
		return endless(rest, shells+1)
	case "tini", "dumb-init", "catatonit":
		return endless(rest[slices.Index(rest, "--")+1:], shells+1)
	case "sh", "bash", "ash", "dash", "ksh", "zsh":
		if script, ok := scriptOf(rest); ok {
			return endlessScript(script, shells+1)
		}
	}
	if ends {
		return ""
	}
	return brief(strings.Join(words, " "))
}

func brief(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// sleepsFor is the sum of the times in seconds; 0 where one is none.
func sleepsFor(times []string) float64 {
	sum := 0.0
	for _, text := range times {
		unit := 1.0
		if n := len(text) - 1; n > 0 {
			if factor, ok := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}[text[n]]; ok {
				text, unit = text[:n], factor
			}
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.HasPrefix(text, "-") {
			return 0
		}
		sum += value * unit
	}
	return sum
}

// follows tells that tail waits for more, and not only as long as some process lives.
func follows(words []string) bool {
	found := false
	for _, word := range words {
		switch {
		case strings.HasPrefix(word, "--pid"), word == "--help", word == "--version":
			return false
		case word == "--":
			return found
		case strings.HasPrefix(word, "--follow"):
			found = true
		case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--"):
			found = found || strings.ContainsAny(word, "fF")
		}
	}
	return found
}

// scriptOf is what a shell is given by -c, also among other options such as -ec.
func scriptOf(words []string) (script string, ok bool) {
	for i, word := range words {
		switch {
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+") && (i == 0 || words[i-1] != "-o"):
			return "", false // a file
		case strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "c"):
			if rest := words[i+1:]; len(rest) > 0 {
				return rest[0], true
			}
			return "", false
		}
	}
	return "", false
}
