package day_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/needs"
)

const (
	proofPage = root + "/docs/proof.md"
	readme    = root + "/README.md"
)

// TestPage holds docs/proof.md, and the figures of README.md, to docs/proof.json.
func TestPage(t *testing.T) {
	if *update || *soak > 0 {
		needs.Skip(t, needs.Flag, "not with -update or -soak, which write the page")
	}
	p := readProof(t)
	if *render {
		p.publish(t)
	}
	page, err := os.ReadFile(proofPage)
	require.NoError(t, err)
	assert.Equal(t, p.page(), string(page), "run go test ./test/proof/day -run TestPage -render")
	front, err := os.ReadFile(readme)
	require.NoError(t, err)
	assert.Contains(t, string(front), p.headline())
	p.check(t)
}

// publish writes what is made of the figures.
func (p *proof) publish(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(proofPage, []byte(p.page()), 0o600))
	name, err := filepath.Abs(strings.TrimSuffix(proofPage, ".md"))
	require.NoError(t, err)
	in, err := os.Open(proofJSON)
	require.NoError(t, err)
	defer in.Close() //nolint:errcheck // only read from
	cmd := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "test", "harness", "plot"), "run", ".", name)
	cmd.Stdin = in
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	const begin, end = "<!-- begin proof -->\n", "<!-- end proof -->"
	front, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(front), begin)
	require.True(t, found, begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, end)
	require.NoError(t, os.WriteFile(readme, []byte(before+begin+p.headline()+end+after), 0o600))
}

// timeScale is by how much boots and pulls of the simulation are shorter than real ones.
const timeScale = 20

// headline is the line below the plot in README.md.
func (p *proof) headline() string {
	none, hand, with := &p.Variants[0], &p.Variants[1], &p.Variants[2]
	minutes := func(v *result) float64 { return timeScale * quantile(v.seconds(), 0.9) / 60 }
	return fmt.Sprintf("A simulated working day of %d Workspaces on Karpenter: %s start on a warm node with warmpool, %s in a pool by hand, %s without one. "+
		"At full time scale nine of ten have started within about %.0f minutes, %.0f by hand, %.0f without ([how](docs/proof.md), `make proof`).\n",
		p.Count, percent(with.warm()), percent(hand.warm()), percent(none.warm()), minutes(with), minutes(hand), minutes(none))
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

func (p *proof) page() string {
	var out strings.Builder
	day := time.Duration(float64(workday) / p.Faster).Round(time.Second)
	fmt.Fprintf(&out, `# Proof

What a warm pool does for Workspaces, without and with warmpool. Made by `+"`make proof`"+`, not edited by hand; all figures
are in [proof.json](proof.json).

![For each cluster, the part of the Workspaces that has started within a time](proof.svg)

## A working day on Karpenter

The same %d Workspaces, one of five with a GPU, come to three clusters in a day of %s. At noon the templates get a new image.

| | Starts | Median, s | p90, s | p99, s | Warm | Outside the pool | Pulls on warm nodes | Node-hours |
|---|--:|--:|--:|--:|--:|--:|--:|---|
`, p.Count, day)
	for i := range p.Variants {
		v := &p.Variants[i]
		fmt.Fprintf(&out, "| %s | %d | %.1f | %.1f | %.1f | %s | %d | %s | %s |\n", title[v.Name], len(v.Starts),
			quantile(v.seconds(), 0.5), quantile(v.seconds(), 0.9), quantile(v.seconds(), 0.99), percent(v.warm()), v.outside(), v.pulls(), v.hours())
	}
	p.explain(&out)
	p.real(&out)
	p.caveats(&out)
	if p.Soak != nil {
		fmt.Fprintf(&out, "\n## Soak\n\n%.0f minutes of such days on warmpool, %d starts, with another image each noon; after the first fifth of the time:\n%s.\n",
			p.Soak.Minutes, p.Soak.Starts, p.Soak)
	}
	return out.String()
}

var title = map[variant]string{
	nothing:  "(a) No warm pool",
	byHand:   "(b) A pool by hand",
	warmpool: "(c) warmpool",
}

// pulls are the starts that had to pull where a placeholder was ready.
func (r *result) pulls() string {
	if !r.Name.placeholders() {
		return "-"
	}
	text := fmt.Sprint(r.coldOnWarm(false))
	if syncing := r.coldOnWarm(true); syncing > 0 {
		text += fmt.Sprintf(", and %d before all placeholders had the new image", syncing)
	}
	return text
}

func (r *result) hours() string {
	total := 0.0
	var parts []string
	for _, pool := range slices.Sorted(maps.Keys(r.Hours)) {
		total += r.Hours[pool]
		parts = append(parts, fmt.Sprintf("%s %.0f", pool, r.Hours[pool]))
	}
	return fmt.Sprintf("%.0f: %s", total, strings.Join(parts, ", "))
}

func (p *proof) explain(out *strings.Builder) {
	hand, with := &p.Variants[1], &p.Variants[2]
	fmt.Fprintf(out, `
- **Warm**: the node was there, and had the image. **Outside the pool**: on a node of another NodePool. **Pulls on warm nodes**:
  the Workspace waited for its image beside, or in the place of, a placeholder that had pulled what it was to pull.
- **(a)** has the same NodePools, and Karpenter removes nodes that are empty.
- **(b)** has placeholders made by hand, as many as (c), with the usual slips: nothing places Workspaces, the rollout is the API
  server's default, and somebody updates the placeholders' images %d hours after the templates' change. All had the new image after %s.
- **(c)** is warmpool with its placeholders as they ship. All had the new image after %s. Starts by path: %s; by warmpool's own
  metrics: %s. Its times are whole seconds. Tests hold both to agree on which starts are cold, unless a placeholder pulled or left
  within 3 s of the Workspace.
- **Node-hours** are hours of the day, by NodePool; "general" is for what is no Workspace, and has one node from the start.
`, int((fixed-noon)/time.Hour), hand.synced(), with.synced(), paths(with.Paths), paths(with.Told))
}

func (r *result) synced() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Synced)) {
		parts = append(parts, fmt.Sprintf("%s %.0f s", kind, r.Synced[kind]))
	}
	return strings.Join(parts, ", ")
}

func paths(counts map[string]int) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[path], path))
	}
	return strings.Join(parts, ", ")
}

func (p *proof) real(out *strings.Builder) {
	fmt.Fprintf(out, `
## Real nodes

Real kubelets that pull real images of %.0f MiB at %.0f MiB/s, from the first part of `+"`make proof`"+` (test/proof/realnodes), seconds from the
creation of the Workspace:

| | Bound | Running |
|---|--:|--:|
`, p.Real.ImageMiB, p.Real.MiBSecond)
	for i, list := range [][]start{p.Real.Warm, p.Real.Cold} {
		for _, s := range list {
			fmt.Fprintf(out, "| %s: %s | %.2f | %.2f |\n", []string{"Warm", "Cold"}[i], s.Name, s.Bound, s.Running)
		}
	}
	var warm, cold []float64
	for _, s := range p.Real.Warm {
		warm = append(warm, s.Running)
	}
	for _, s := range p.Real.Cold {
		cold = append(cold, s.Running)
	}
	ratio := quantile(cold, 0.5) / quantile(warm, 0.5)
	fmt.Fprintf(out, "\nA cold start takes %.0f times as long as a warm one, and the node is there already.\n", math.Round(ratio))
}

func (p *proof) caveats(out *strings.Builder) {
	fmt.Fprintf(out, `
## How

- **Real** in the simulation: etcd, API server, controllers, scheduler, Karpenter, warmpool. **Played** (test/harness/simulation): machines,
  kubelets with what each node has pulled, CPA by its formula, and Workspaces as jupyter-k8s makes them.
- **Delays.** A pod whose images are there runs after %.2f s, and a pull takes %.2f s for each GB: both are medians of the real nodes
  above, whose image stands for the 3.5 GB of the CPU image of SageMaker Distribution at 35 MB/s, at 1/20 of the time; the GPU image
  has 9.85 GB. A machine boots in %.0f s, 1/20 of 3 minutes: an assumption, so that a cold start takes the 5 to 7 minutes of the guide
  "Node Overprovisioning for Spaces". Nothing else is compressed.
- **A hard day.** It is %.0f times shorter than a real one, and boots and pulls only 20 times: in terms of the day a node comes %.0f
  times later than in a cluster, and more Workspaces meet a pool that is not refilled yet. This holds for all three.
- **One run** on two cores that everything shares; seed %d. What is compared was measured in one go; other machines give other times.
- Test assertions hold (c) to: no Workspace outside its pool, no pull on a warm node once images are synced, no Workspace evicted, and
  more warm starts than (b).
`, p.Delays.Start, p.Delays.PullGB, p.Delays.Boot, p.Faster, p.Faster/20, p.Seed)
}
