package cluster

// NodeLabels are the labels that some nodes of a pool have.
type NodeLabels struct {
	// Nodes is their number.
	Nodes int
	// ByKey are the labels that at least one of them has. It may not be changed.
	ByKey map[string]SeenLabel
}

// SeenLabel is a label as nodes have it.
type SeenLabel struct {
	// Values of it, sorted; none are listed where there are too many.
	Values []string
	// All tells that every node has the label.
	All bool
}
