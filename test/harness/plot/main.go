// Command plot draws docs/proof.json, which it reads from standard input: for each cluster, what part of the Workspaces
// has started within a time. It writes NAME.svg and NAME.png. It has a module of its own, so that plotting is no
// dependency of warmpool.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Size of the drawing.
const (
	width  = 7.5 * vg.Inch
	height = 3.75 * vg.Inch
	margin = 10 * vg.Inch / 72
)

// proof is the part of the file that is drawn.
type proof struct {
	Variants []struct {
		Name   string `json:"name"`
		Starts []struct {
			Running float64 `json:"running"` // seconds
			Warm    bool    `json:"warm"`
		} `json:"starts"`
	} `json:"variants"`
}

// Colours that differ for the colour-blind too, on an opaque ground: a page may be dark.
var (
	ground = color.NRGBA{R: 0xfb, G: 0xfb, B: 0xf9, A: 0xff}
	ink    = color.NRGBA{R: 0x33, G: 0x33, B: 0x33, A: 0xff}
	faint  = color.NRGBA{R: 0xdd, G: 0xdd, B: 0xd8, A: 0xff}
	lines  = []draw.LineStyle{
		{Color: color.NRGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}, Width: vg.Points(2), Dashes: []vg.Length{vg.Points(2), vg.Points(2)}},
		{Color: color.NRGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, Width: vg.Points(2), Dashes: []vg.Length{vg.Points(7), vg.Points(3)}},
		{Color: color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, Width: vg.Points(2.5)},
	}
)

func main() {
	if err := run(os.Stdin, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: plot NAME <docs/proof.json")
	}
	var all proof
	if err := json.NewDecoder(in).Decode(&all); err != nil {
		return fmt.Errorf("read the proof: %w", err)
	}
	p, err := all.plot()
	if err != nil {
		return err
	}
	for _, kind := range []string{"svg", "png"} {
		if err := write(p, args[0]+"."+kind, kind); err != nil {
			return fmt.Errorf("write %s.%s: %w", args[0], kind, err)
		}
	}
	return nil
}

// write draws with a margin, in the ground's colour too.
func write(p *plot.Plot, name, kind string) error {
	canvas, err := draw.NewFormattedCanvas(width, height, kind)
	if err != nil {
		return err
	}
	all := draw.New(canvas)
	all.SetColor(ground)
	all.Fill(all.Rectangle.Path())
	p.Draw(draw.Crop(all, margin, -margin, margin, -margin))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	return os.WriteFile(name, out.Bytes(), 0o600)
}

func (all *proof) plot() (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = ground
	p.Title.Text = "How long Workspaces take to start (boots and pulls at 1/20 of their time)"
	p.X.Label.Text = "seconds from creation to running (log scale)"
	p.Y.Label.Text = "Workspaces that have started"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, seconds{}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 1, percent{}
	p.Add(&plotter.Grid{Vertical: draw.LineStyle{Color: faint, Width: vg.Points(0.5)}, Horizontal: draw.LineStyle{Color: faint, Width: vg.Points(0.5)}})
	p.X.Min, p.X.Max = 1000, 0
	for _, v := range all.Variants {
		for _, s := range v.Starts {
			p.X.Min, p.X.Max = min(p.X.Min, s.Running), max(p.X.Max, s.Running)
		}
	}
	for i, v := range all.Variants {
		line, err := all.line(i, p.X.Min*0.9, p.X.Max*1.1)
		if err != nil {
			return nil, err
		}
		p.Add(line)
		warm := 0
		for _, s := range v.Starts {
			if s.Warm {
				warm++
			}
		}
		p.Legend.Add(fmt.Sprintf("%s (%d %% warm)", v.Name, (100*warm+len(v.Starts)/2)/len(v.Starts)), line)
	}
	p.X.Min, p.X.Max = p.X.Min*0.9, p.X.Max*1.1
	style(p)
	return p, nil
}

// line rises by one step for each start.
func (all *proof) line(i int, from, to float64) (*plotter.Line, error) {
	var took []float64
	for _, s := range all.Variants[i].Starts {
		took = append(took, s.Running)
	}
	if len(took) == 0 {
		return nil, fmt.Errorf("%s has no starts", all.Variants[i].Name)
	}
	slices.Sort(took)
	points := plotter.XYs{{X: from, Y: 0}}
	for n, x := range took {
		points = append(points, plotter.XY{X: x, Y: float64(n+1) / float64(len(took))})
	}
	line, err := plotter.NewLine(append(points, plotter.XY{X: to, Y: 1}))
	if err != nil {
		return nil, err
	}
	line.StepStyle, line.LineStyle = plotter.PostStep, lines[i%len(lines)]
	return line, nil
}

func style(p *plot.Plot) {
	p.Title.Padding, p.X.Padding, p.Y.Padding = vg.Points(8), vg.Points(2), vg.Points(2)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs = false, false, vg.Points(-45), vg.Points(8)
	p.Legend.ThumbnailWidth, p.Legend.Padding = vg.Points(30), vg.Points(3)
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		s.Color, s.Font.Variant, s.Font.Size = ink, "Sans", font.Length(10)
	}
	p.Title.TextStyle.Font.Size = font.Length(12)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = ink, ink
	}
}

// seconds marks 1, 2 and 5 of each power of ten.
type seconds struct{}

// Ticks are those between two values.
func (seconds) Ticks(from, to float64) (ticks []plot.Tick) {
	for power := 0.01; power <= to; power *= 10 {
		for _, x := range []float64{1, 2, 5} {
			if at := x * power; at >= from && at <= to {
				ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'g', 3, 64)})
			}
		}
	}
	return ticks
}

// percent marks quarters.
type percent struct{}

// Ticks are those of 0 to 1.
func (percent) Ticks(_, _ float64) (ticks []plot.Tick) {
	for _, x := range []float64{0, 0.25, 0.5, 0.75, 1} {
		ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprintf("%.0f %%", 100*x)})
	}
	return ticks
}
