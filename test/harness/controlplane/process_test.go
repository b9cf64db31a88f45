package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLaunchTriesOtherPortsOnAClashOnly(t *testing.T) {
	for _, test := range []struct {
		name, says string
		attempts   int
	}{
		{"clash", "listen tcp 127.0.0.1:1: bind: address already in use", portAttempts},
		{"other", "unknown flag: --such", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &ControlPlane{Dir: t.TempDir(), spawner: newSpawner()}
			defer c.spawner.close()
			seen := map[int]bool{}
			err := c.launch(t.Context(), program{name: "liar", path: "/bin/sh", ports: 1,
				command: func(ports []int) ([]string, []string, error) {
					seen[ports[0]] = true
					return []string{"-c", "echo '" + test.says + "'; exit 1"}, nil, nil
				},
				ready: func(context.Context, []int) error { return errors.New("not yet") },
			})
			require.ErrorContains(t, err, "start liar")
			require.ErrorContains(t, err, test.says, "the error shows the log")
			assert.Len(t, c.children, test.attempts)
			assert.Equal(t, test.attempts == portAttempts, errors.Is(err, errPortTaken))
		})
	}
}

func TestAnswerOfAnotherProcessIsNotReadiness(t *testing.T) {
	c := &ControlPlane{Dir: t.TempDir(), spawner: newSpawner()}
	defer c.spawner.close()
	started, err := c.spawn(program{name: "dead", path: "/bin/false"}, nil, nil)
	require.NoError(t, err)
	err = started.waitReady(t.Context(), func(context.Context) error {
		<-started.done
		return nil
	})
	require.ErrorContains(t, err, "ended before it was ready")
}

func TestErrorShowsTheEndOfTheLog(t *testing.T) {
	p := &child{log: filepath.Join(t.TempDir(), "log")}
	text := "first\n"
	for range tailLines {
		text += "line\n"
	}
	require.NoError(t, os.WriteFile(p.log, []byte(text), 0o600))
	assert.NotContains(t, p.tail(), "first")
	assert.Contains(t, p.tail(), "line")
}

func TestChildrenSeeNothingOfTheUsersEnvironment(t *testing.T) {
	t.Setenv("KUBECONFIG", "/home/somebody/.kube/config")
	c := &ControlPlane{Dir: t.TempDir(), spawner: newSpawner()}
	defer c.spawner.close()
	started, err := c.spawn(program{name: "env", path: "/usr/bin/env"}, nil, []string{"OWN=1"})
	require.NoError(t, err)
	<-started.done
	assert.NotContains(t, started.tail(), "KUBECONFIG")
	assert.Contains(t, started.tail(), "HOME="+c.Dir)
	assert.Contains(t, started.tail(), "OWN=1")
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := freePorts(20)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range ports {
		seen[port] = true
	}
	assert.Len(t, seen, 20)
}
