package prepull_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/prepull"
)

func TestEndless(t *testing.T) {
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	endless := map[string][][]string{
		"sleep infinity": {
			{"sleep", "infinity"}, sh("sleep infinity"), sh("echo pulled; sleep infinity"), sh("echo pulled && sleep infinity"),
			sh("echo a && echo b && sleep 'infinity'"), sh("set -e\necho pulled\nexec sleep infinity\n"), sh(`trap : TERM INT; sleep infinity & wait`),
			sh("sleep infinity & wait $!"), sh("{ sleep infinity; }"), sh("(sleep infinity)"), sh("echo $HOME; sleep infinity # hold"), sh("X=1 sleep infinity"),
			{"/bin/bash", "-ec", "sleep infinity"}, {"bash", "-e", "-o", "pipefail", "-c", "sleep infinity"}, {"tini", "--", "sleep", "infinity"},
			{"env", "A=b", "sleep", "infinity"}, {"busybox", "sleep", "infinity"}, {"sh", "-c", "sh -c 'sleep infinity'"},
		},
		"/bin/sleep inf":     {{"/bin/sleep", "inf"}},
		"sleep 1d":           {{"sleep", "1d"}, sh("sleep 1d")},
		"sleep 3600":         {{"sleep", "3600"}},
		"sleep 8m 2m":        {sh("sleep 8m 2m")},
		"tail -f /dev/null":  {{"tail", "-f", "/dev/null"}, sh("tail -f /dev/null"), sh("cat x || true; tail -f /dev/null")},
		"tail -F x":          {sh("tail -F x")},
		"tail --follow=name": {{"tail", "--follow=name"}},
		"/pause":             {{"/pause"}},
		"yes":                {sh("yes > /dev/null")},
		"while true":         {sh("while true; do sleep 30; done"), sh("echo x; while :; do :; done"), sh("while true; do sleep 5; done & wait")},
		"until false":        {sh("until false; do sleep 1; done")},
		"for ((;;))":         {{"bash", "-c", "for ((;;)); do sleep 1; done"}},
	}
	for want, commands := range endless {
		for _, command := range commands {
			assert.Equal(t, want, prepull.Endless(&corev1.Container{Command: command}), "%q", command)
			assert.Equal(t, want, prepull.Endless(&corev1.Container{Command: command[:1], Args: command[1:]}), "%q as args", command)
		}
	}

	ends := [][]string{
		nil, {}, {""}, {"true"}, {"/bin/true"}, {"sleep"}, {"sleep", "1"}, {"sleep", "5m"}, {"sleep", "infinite"}, {"sleep", "nan"}, {"sleep", "-1d"}, {"sleep", "--help"},
		{"echo", "sleep", "infinity"}, {"echo", "sleep infinity"}, {"timeout", "5", "sleep", "infinity"}, {"tail", "-n", "5", "file-f"}, {"tail", "--", "-f"},
		{"tail", "--pid=1", "-f", "x"}, {"pause", "-v"}, {"sh"}, {"sh", "-c"}, {"sh", "script-c", "sleep infinity"}, {"command", "-v", "sleep"}, {"tini", "--"},
		sh(""), sh("echo pre-pulled"), sh("exit 0; sleep infinity"), sh("sleep 1"), sh("sleep infinity & echo done"), sh("echo 'sleep infinity'"), sh("# sleep infinity"),
		sh("sleep $TIME"), sh("$CMD; sleep infinity"), sh("[ -n \"$DEBUG\" ] && sleep infinity; true"), sh("false || sleep infinity"), sh("test -f x || exit 0; sleep infinity"),
		sh("if test -f x; then exit 0; fi; sleep infinity"), sh("while true; do test -f x && break; sleep 1; done"), sh("while true; do exit; done"),
		sh("while ! test -f x; do sleep 1; done"), sh("while read x; do sleep 1; done"), sh("until test -f x; do sleep 1; done"), sh("! true && sleep infinity"),
		sh("for i in 1 2; do sleep 1; done"), sh("tail -f x | head -1"), sh("yes | head -1"), sh("sleep() { :; }; sleep infinity"), sh("sleep infinity & sleep 1 & wait $!"),
		sh("eval \"$X\"; sleep infinity"), sh("kill $$; sleep infinity"), sh("exec true; sleep infinity"), sh("cat <<EOF\nsleep infinity\nEOF"), sh("echo \"$(sleep 1)\""),
		sh("sleep infinity'"), sh("((("), sh("sleep \\infinity x"), sh(strings.Repeat("(", 4000)), sh("true;" + strings.Repeat(" ", 5000) + "sleep infinity"),
	}
	for _, command := range ends {
		assert.Empty(t, prepull.Endless(&corev1.Container{Command: command}), "%q", command)
	}
	assert.Empty(t, prepull.Endless(&corev1.Container{Args: []string{"sleep", "infinity"}}), "args alone go to the image's entry point")
	deep := []string{"sleep", "infinity"}
	for range 1000 {
		deep = append([]string{"exec"}, deep...)
	}
	assert.Empty(t, prepull.Endless(&corev1.Container{Command: deep}))
	assert.Less(t, len(prepull.Endless(&corev1.Container{Command: []string{"tail", "-f", strings.Repeat("é", 1000)}})), 100)
}

// FuzzEndless: no script, however odd, breaks the judgement.
func FuzzEndless(f *testing.F) {
	for _, script := range []string{"sleep infinity", "while true; do :; done & wait", "a=(b) && { for ((;;)); do case x in y) ;; esac; done; }", "((1)) | [[ a ]] || $(x) `y`", "! time -p coproc x", "let x; declare y; >z"} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if what := prepull.Endless(&corev1.Container{Command: []string{"sh", "-c", script}}); len(what) > 100 {
			t.Error(what)
		}
	})
}
