package audit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/poolview"
)

var update = flag.Bool("update", false, "write testdata/page/page.html anew")

// pictured is the sample report with the pools of testdata/page.
func pictured(t *testing.T) *Report {
	t.Helper()
	folder := filepath.Join("testdata", "page")
	facts, _, err := manifest.Read([]string{filepath.Join(folder, "cluster.yaml")}, nil)
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(folder, "warmpool.yaml"))
	require.NoError(t, err)
	cfg, err := config.Load(data, policy.IDs())
	require.NoError(t, err)
	e, err := policy.New(cfg, facts, sampleTime)
	require.NoError(t, err)
	r := sample(t)
	r.Time, r.Version, r.Subject, r.Configuration = sampleTime, "v1.2.3", `a "folder" <of> manifests`, "warmpool.yaml"
	r.Notes = []string{"this user may not list nodes </ul><script>"}
	r.Views = poolview.Of(e)
	return r
}

func rendered(t *testing.T, r *Report) string {
	t.Helper()
	var page strings.Builder
	require.NoError(t, r.Print(&page, "html", Screen{}))
	return page.String()
}

// The page as it is, without its style: read what changes in it.
func TestPage(t *testing.T) {
	page := rendered(t, pictured(t))
	assert.Equal(t, page, rendered(t, pictured(t)), "the same report gives the same bytes")
	assert.NotContains(t, page, "<script", "what objects hold is text")
	assert.Contains(t, page, "&lt;script&gt;alert(")
	assert.NotContains(t, page, "http:", "nothing is fetched")
	assert.NotContains(t, page, "https:", "nothing is fetched")
	assert.NotContains(t, page, "\x1b")

	_, rest, _ := strings.Cut(page, "<style>")
	style, rest, found := strings.Cut(rest, "</style>")
	require.True(t, found)
	assert.Equal(t, PageStyle, style)
	golden := filepath.Join("testdata", "page", "page.html")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(rest), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), rest)
}

// A cluster of 10,000 nodes, no two alike, with a finding for each, gives a page that opens at once.
func TestPageIsBounded(t *testing.T) {
	const nodes = 10_000
	r := &Report{Rules: policy.Rules()}
	view := &poolview.View{Pool: &config.Pool{Name: "cpu"}, Resource: corev1.ResourceCPU}
	var findings []policy.Finding
	for i := range nodes {
		g := poolview.NodeGroup{Names: []string{fmt.Sprintf("node-%d", i)}, State: poolview.NodeInUse, Allocatable: resource.MustParse("96")}
		for range 110 {
			g.Workspaces = append(g.Workspaces, *resource.NewMilliQuantity(int64(100+i), resource.DecimalSI))
		}
		view.Nodes = append(view.Nodes, g)
		view.Unknown = append(view.Unknown, fmt.Sprintf("node %d", i))
		findings = append(findings, finding(t, "node-taints", policy.SeverityError, "Node", "", fmt.Sprintf("node-%d", i),
			field.Invalid(field.NewPath("spec", "taints"), "x", strings.Repeat("long ", 2000))))
	}
	same := poolview.NodeGroup{State: poolview.NodeEmpty, Allocatable: resource.MustParse("96")}
	for i := range 500 {
		same.Names = append(same.Names, fmt.Sprintf("same-%d", i))
	}
	view.Nodes = append([]poolview.NodeGroup{same}, view.Nodes...)
	r.Findings = New(findings, 0, nil).Findings
	r.count()
	r.Views = []*poolview.View{view}

	page := rendered(t, r)
	assert.Less(t, len(page), 512<<10)
	assert.Contains(t, page, "500 × node")
	assert.Contains(t, page, "and 470 more like these")
	assert.Contains(t, page, fmt.Sprintf("and %d more nodes", nodes-mostGroups+1))
	assert.Contains(t, page, fmt.Sprintf("and %d more like these of <code>node-taints</code>", nodes-mostOfARule))
	assert.Contains(t, page, "10000 errors")
}

// Widths are shares of numbers, and what exceeds its node stays in its box.
func TestNodePage(t *testing.T) {
	g := &poolview.NodeGroup{
		Names: []string{"a"}, State: poolview.NodeWarm, Allocatable: resource.MustParse("8"), Daemons: resource.MustParse("1"),
		Placeholder: resource.MustParse("2"), Workspaces: []resource.Quantity{resource.MustParse("3"), resource.MustParse("500m")},
	}
	threshold := resource.MustParse("5")
	g.Threshold = &threshold
	n := newNodePage(g, corev1.ResourceCPU, 16)
	assert.Equal(t, "50.000%", n.Width)
	var places []string
	for _, p := range n.Parts {
		places = append(places, p.Class+" "+p.At+" "+p.Wide)
	}
	assert.Equal(t, []string{"daemons 0.000% 12.500%", "workspace 12.500% 37.500%", "workspace 50.000% 6.250%", "placeholder 75.000% 25.000%"}, places)
	assert.Equal(t, "75.000%", n.Threshold, "where the placeholder begins")
	assert.Equal(t, "DaemonSets 1 · 2 Workspaces 3.5 · free 1.5 · placeholder 2", n.Numbers)

	g.Placeholder = resource.MustParse("12")
	n = newNodePage(g, corev1.ResourceCPU, 16)
	assert.Equal(t, "100.000%", n.Parts[3].Wide)
	assert.Contains(t, n.Numbers, "short of 8.5")
}
