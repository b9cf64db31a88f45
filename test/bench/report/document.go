package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// section is a table of the document: the rows of a part, and of them the figures that columns name.
type section struct {
	title, about string
	part         string
	columns      []column
}

// column is a unit and what stands above it. The unit "runs" is the number of those.
type column struct{ unit, head string }

var sections = []section{
	{
		title: "Creating a pod", part: "Creation",
		about: `A Workspace's pod is created on a real API server (etcd without fsync), one after another, by one client over one connection. All variants
are registered at once, each for a namespace of its own, by the webhook entry that warmpool ships; in every round each has one
creation, in random order. Every pod is really stored, looked at whether it was placed as it should be, and deleted after the round. *Adds* is the median
over that without a webhook; *of a constant patch* is that over what a webhook adds that answers everything with warmpool's own patch for this pod. Bounds are of
95 % confidence, by bootstrap over the rounds. Webhooks are processes of their own behind the same TLS server of controller-runtime;
the no-op and the constant patch decode the review. The API server asks all of them over HTTP/1.1, as it asks
Services. Both is policy and warmpool together, where warmpool finds nothing left to do.`,
		columns: []column{{"runs", "pods"}, {"p50-ms", "p50, ms"}, {"p99-ms", "p99, ms"}, {"added-ms", "adds, ms"}, {"added-x-constant", "of a constant patch"}, {"p99-x-noop", "p99 of the no-op's"}},
	},
	{
		title: "Creating a pod that is placed already", part: "Placed",
		about:   `In the same rounds: the pod as warmpool makes it, so that nothing is left to change.`,
		columns: []column{{"runs", "pods"}, {"p50-ms", "p50, ms"}, {"p99-ms", "p99, ms"}, {"added-ms", "adds, ms"}, {"added-x-noop", "of a no-op"}, {"p99-x-noop", "p99 of the no-op's"}},
	},
	{
		title: "200 creations at once", part: "AtOnce",
		about: `Bursts of each variant in turn: 200 workers, each with one pod after another. An error is any answer but 201, and a pod that is not placed as it
should be: the webhooks fail open, as shipped, so a time-out would not be refused. Processor time is that of the process while the variant's bursts run.
Warmpool also sees every Workspace pod come: what it takes for that, whoever places the pod, is its time in the rows that do not ask it.`,
		columns: []column{{"runs", "pods"}, {"errors", "errors"}, {"pods/s", "pods/s"}, {"p50-ms", "p50, ms"}, {"p99-ms", "p99, ms"}, {"apiserver-cpu-ms/pod", "API server, CPU ms/pod"}, {"webhook-cpu-ms/pod", "own webhook"}, {"warmpool-cpu-ms/pod", "warmpool"}},
	},
	{
		title: "Processes", part: "Processes",
		about:   `While the pods of the first two tables were created. Warmpool's includes its watches of the cluster.`,
		columns: []column{{"runs", "pods"}, {"cpu-s", "CPU, s"}, {"resident-MiB", "resident, MiB"}, {"most-resident-MiB", "at most"}},
	},
	{
		title: "Servers asked directly", part: "HTTP2",
		about: `The same processes, without an API server between: whole reviews over HTTP/2 and TLS 1.3, each connection with one request in work at
once, or one connection with 128. API servers ask Services over HTTP/1.1, with a connection for each request that is in work. Medians of the
rounds; the client shares the processors.`,
		columns: []column{{"requests/s", "requests/s"}, {"p50-ms", "p50, ms"}, {"p99-ms", "p99, ms"}, {"cpu-us/request", "CPU µs/request"}, {"requests-x-noop", "requests of the no-op's"}, {"p50-x-noop", "p50 of the no-op's"}, {"p99-x-noop", "p99 of the no-op's"}},
	},
	{
		title: "Handlers alone", part: "Handlers",
		about: `A whole HTTP handler on a review, in process. Rows *ratios* run all handlers in turn and count processor time: warmpool over a handler that
decodes the review and does nothing, the framework's default path over warmpool, and allocations of warmpool over the framework's.`,
		columns: []column{{"ns/op", "ns"}, {"B/op", "bytes"}, {"allocs/op", "allocations"}, {"x-noop", "of a no-op"}, {"framework-x", "framework's, of warmpool"}, {"allocs-part", "allocations, of the framework's"}},
	},
	{
		title: "Size of the cluster", part: "Scale",
		about:   `The handlers with 200 DaemonSets and 20 pools, over the cost at 10 nodes.`,
		columns: []column{{"x-10", "of 10 nodes"}},
	},
	{
		title: "A node changes", part: "Rebuild",
		about:   `What admissions go by is made anew, off their path.`,
		columns: []column{{"ns/op", "ns"}, {"B/op", "bytes"}, {"allocs/op", "allocations"}},
	},
	{
		title: "Memory", part: "Memory",
		about:   `Resident memory of serve beside a real API server: the most of half a minute.`,
		columns: []column{{"resident-MiB", "resident, MiB"}, {"last-MiB", "at last"}},
	},
	{
		title: "Image sync", part: "ImageSync",
		about: `100 pools with 5 templates and 5 placeholders each: from before a template is edited until a watch has shown all placeholders of its pool with the new
image; beside a plain client that makes the same patches. Cold is the start of serve with none of them in sync.`,
		columns: []column{{"runs", "runs"}, {"p50-ms", "p50, ms"}, {"p99-ms", "p99, ms"}, {"most-ms", "most, ms"}, {"p50-x-bare", "p50 of bare patches'"}, {"s", "s"}},
	},
	{
		title: "Audit", part: "Audit",
		about:   `The command over a folder of manifests: 10,000 nodes, 5,000 Workspace pods, 500 placeholders; in each output format; beside only decoding the same files. The median of 3 runs.`,
		columns: []column{{"s", "s"}, {"cpu-s", "CPU, s"}, {"resident-MiB", "resident, MiB"}, {"x-decoding", "of decoding"}, {"cpu-x-decoding", "CPU of decoding's"}},
	},
}

// document renders performance.md.
func (m *measured) document() ([]byte, error) {
	var text strings.Builder
	w := m.Machine
	fmt.Fprintf(&text, "# Performance\n\nMade by `make bench` from bench.json, not edited by hand. %s, warmpool %s, Kubernetes %s, %s, Linux %s, %d × %s, %d GiB; the load average before was %s.\n\n",
		w.Date, w.Warmpool, w.Kubernetes, w.Go, w.Kernel, w.Processors, w.CPU, (w.MemoryMiB+512)>>10, number(w.LoadBefore))
	if m.Trial {
		text.WriteString("**A trial with few samples and small clusters: nothing follows from these figures.**\n\n")
	}
	if err := m.writeGoals(&text); err != nil {
		return nil, err
	}
	text.WriteString(reading)
	for _, s := range sections {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n", s.title, s.about)
		m.writeTable(&text, s)
	}
	return []byte(text.String()), nil
}

const reading = `
Ratios are of one run, in which all that is compared took turns, and hold elsewhere; times are of this machine, which runs API server, etcd, webhooks
and client on the same processors. A creation over a network and with other webhooks takes longer with and without warmpool.
`

func (m *measured) writeTable(text *strings.Builder, s section) {
	text.WriteString("| |")
	for _, c := range s.columns {
		fmt.Fprintf(text, " %s |", c.head)
	}
	text.WriteString("\n|---|" + strings.Repeat("--:|", len(s.columns)) + "\n")
	for _, row := range m.Rows {
		if row.Part != s.part {
			continue
		}
		fmt.Fprintf(text, "| %s |", strings.NewReplacer("/", ", ", "-", " ").Replace(row.Name))
		for _, c := range s.columns {
			if c.unit == "runs" {
				fmt.Fprintf(text, " %d |", row.Runs)
				continue
			}
			fmt.Fprintf(text, " %s |", cell(row.Metrics, c.unit))
		}
		text.WriteString("\n")
	}
}

// cell is a figure with its bounds, where there are any that say more.
func cell(metrics map[string]float64, unit string) string {
	value, ok := metrics[unit]
	if !ok {
		return ""
	}
	low, high := metrics[unit+"-low"], metrics[unit+"-high"]
	if low == high {
		return number(value)
	}
	return fmt.Sprintf("%s (%s–%s)", number(value), number(low), number(high))
}

// number has three digits that count, and all before the point.
func number(value float64) string {
	digits := 2
	if size := math.Abs(value); size > 0 {
		digits = max(0, 2-int(math.Floor(math.Log10(size))))
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
