package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/test/bench/proc"
	"warmpool.sh/test/bench/result"
)

const (
	podName = "POD-NAME"
	// inPool is in a pod that is placed, and in no other.
	inPool = `"spaces-gpu"`
)

// call sends a request and gives the whole answer of the API server; one that is not of that code is an error.
func (c *cluster) call(ctx context.Context, method, path string, code int, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Config.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.poster.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != code {
		err = fmt.Errorf("%s %s: %s: %.500s", method, path, response.Status, answer)
	}
	return answer, err
}

func podsPath(v variant) string { return "/api/v1/namespaces/" + v.kind.namespace() + "/pods" }

func (c *cluster) dryRun(ctx context.Context, v variant, body []byte) (*corev1.Pod, error) {
	answer, err := c.call(ctx, http.MethodPost, podsPath(v)+"?dryRun=All", http.StatusCreated, named(body, "dry-run"))
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	return &pod, json.Unmarshal(answer, &pod)
}

func named(body []byte, name string) []byte {
	return bytes.Replace(body, []byte(podName), []byte(name), 1)
}

// create creates a pod and gives how long that took. A pod that is not placed as it should be is an error.
func (c *cluster) create(ctx context.Context, v variant, name string) (time.Duration, error) {
	body := named(c.body(v), name)
	began := time.Now()
	answer, err := c.call(ctx, http.MethodPost, podsPath(v), http.StatusCreated, body)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if bytes.Contains(answer, []byte(inPool)) != v.places() {
		return 0, fmt.Errorf("%s: pod %s was not answered for", v, name)
	}
	return took, nil
}

// createInTurn creates pods one after another, one of each variant in each round. They are deleted after the round.
func (c *cluster) createInTurn(ctx context.Context, o options, random *rand.Rand, out io.Writer) error {
	all := slices.Concat(variants, placedVariants)
	times := make(samples, len(all))
	for range o.warmup {
		if _, err := c.round(ctx, all, random); err != nil {
			return err
		}
	}
	before, err := c.usage()
	if err != nil {
		return err
	}
	for range o.creations {
		took, err := c.round(ctx, all, random)
		if err != nil {
			return err
		}
		for i := range all {
			times[i] = append(times[i], took[i])
		}
	}
	after, err := c.usage()
	if err != nil {
		return err
	}
	if err := compare(out, times[:len(variants)], variants, constant, random); err != nil {
		return err
	}
	if err := compare(out, times[len(variants):], placedVariants, noop, random); err != nil {
		return err
	}
	return writeUsage(out, o.creations*len(all), before, after)
}

// round gives the milliseconds that each variant took.
func (c *cluster) round(ctx context.Context, all []variant, random *rand.Rand) ([]float64, error) {
	took := make([]float64, len(all))
	names := make([]string, len(all))
	for _, i := range random.Perm(len(all)) {
		c.created++
		names[i] = fmt.Sprintf("workspace-llama-7f6b9d5c8-%07d", c.created)
		duration, err := c.create(ctx, all[i], names[i])
		if err != nil {
			return nil, err
		}
		took[i] = milliseconds(duration)
	}
	for i, v := range all {
		if _, err := c.call(ctx, http.MethodDelete, podsPath(v)+"/"+names[i]+"?gracePeriodSeconds=0", http.StatusOK, nil); err != nil {
			return nil, err
		}
	}
	return took, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// usage of one process.
type usage struct {
	name      string
	cpu       time.Duration
	now, most int // KiB that are resident
}

// usage gives that of all processes.
func (c *cluster) usage() ([]usage, error) {
	processes := slices.Concat([]server{{name: apiServer, pid: c.PID(apiServer)}, {name: etcd, pid: c.PID(etcd)}}, c.servers)
	var all []usage
	for _, process := range processes {
		u := usage{name: process.name}
		var err error
		if u.cpu, err = proc.CPU(process.pid); err != nil {
			return nil, fmt.Errorf("%s: %w", process.name, err)
		}
		if u.now, u.most, err = proc.Memory(process.pid); err != nil {
			return nil, fmt.Errorf("%s: %w", process.name, err)
		}
		all = append(all, u)
	}
	return all, nil
}

func writeUsage(out io.Writer, pods int, before, after []usage) error {
	for i, u := range after {
		err := result.Write(out, "Processes/"+u.name, pods,
			result.Metric{Unit: "cpu-s", Value: (u.cpu - before[i].cpu).Seconds()},
			result.Metric{Unit: "resident-MiB", Value: float64(u.now) / 1024},
			result.Metric{Unit: "most-resident-MiB", Value: float64(u.most) / 1024})
		if err != nil {
			return err
		}
	}
	return nil
}
