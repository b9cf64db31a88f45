package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/sizing"
)

func quantities(text map[corev1.ResourceName]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range text {
		list[name] = resource.MustParse(quantity)
	}
	return list
}

func offering(text map[corev1.ResourceName]string) *sizing.Shape {
	shape := &sizing.Shape{Offers: map[corev1.ResourceName]sizing.Offer{}}
	for name, quantity := range quantities(text) {
		shape.Offers[name] = sizing.Offer{Allocatable: quantity, Available: quantity}
	}
	return shape
}

func TestPlaces(t *testing.T) {
	large := offering(map[corev1.ResourceName]string{"cpu": "47810m", "memory": "184Gi", "pods": "110"})
	small := offering(map[corev1.ResourceName]string{"cpu": "15800m", "memory": "60Gi"})
	template := func(text map[corev1.ResourceName]string) sizing.Template {
		return sizing.Template{Default: quantities(text)}
	}
	four := template(map[corev1.ResourceName]string{"cpu": "4", "memory": "16Gi"})
	for name, c := range map[string]struct {
		shapes    []*sizing.Shape
		templates []sizing.Template
		want      int
	}{
		"nothing is known":            {nil, nil, 1},
		"no template":                 {[]*sizing.Shape{large}, nil, 1},
		"a template without requests": {[]*sizing.Shape{large}, []sizing.Template{{}}, 1},
		"one":                         {[]*sizing.Shape{large}, []sizing.Template{four}, 11},
		"the smaller shape":           {[]*sizing.Shape{large, small}, []sizing.Template{four}, 3},
		"the larger template":         {[]*sizing.Shape{large}, []sizing.Template{four, template(map[corev1.ResourceName]string{"cpu": "40"})}, 1},
		"too large a template":        {[]*sizing.Shape{small}, []sizing.Template{template(map[corev1.ResourceName]string{"cpu": "40"})}, 1},
		"decimal fractions":           {[]*sizing.Shape{offering(map[corev1.ResourceName]string{"cpu": "300m"})}, []sizing.Template{template(map[corev1.ResourceName]string{"cpu": "100m"})}, 3},
	} {
		assert.Equal(t, c.want, sizing.Places(c.shapes, c.templates), name)
	}
}

func TestNodesWithinLimits(t *testing.T) {
	shapes := []*sizing.Shape{
		offering(map[corev1.ResourceName]string{"cpu": "48", "memory": "184Gi", "nvidia.com/gpu": "4"}),
		offering(map[corev1.ResourceName]string{"cpu": "16", "memory": "60Gi", "nvidia.com/gpu": "1"}),
	}
	for name, c := range map[string]struct {
		left  map[corev1.ResourceName]string
		want  int
		known bool
	}{
		"no limits":          {nil, 0, false},
		"cpu":                {map[corev1.ResourceName]string{"cpu": "50"}, 3, true},
		"the least":          {map[corev1.ResourceName]string{"cpu": "500", "nvidia.com/gpu": "2"}, 2, true},
		"nodes":              {map[corev1.ResourceName]string{"nodes": "5"}, 5, true},
		"used up":            {map[corev1.ResourceName]string{"cpu": "-3"}, 0, true},
		"what nodes lack":    {map[corev1.ResourceName]string{"amd.com/gpu": "8"}, 0, false},
		"an absurd quantity": {map[corev1.ResourceName]string{"cpu": "9E"}, 1e6, true},
	} {
		n, known := sizing.Nodes(shapes, quantities(c.left))
		assert.Equal(t, c.known, known, name)
		assert.Equal(t, c.want, n, name)
	}
	_, known := sizing.Nodes(nil, quantities(map[corev1.ResourceName]string{"cpu": "50"}))
	assert.False(t, known)
}
