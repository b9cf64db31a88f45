package cluster

// Unreadable says why it is not known whether an object exists: the kind (in the plural) or the object could not be read.
// It is empty where the object is there, and where it is not.
func (f Facts[T]) Unreadable(kinds, name, key string) string {
	switch reason := f.Malformed(key); {
	case !f.known:
		return kinds + ": " + f.Reason()
	case reason != "":
		return name + ": " + reason
	default:
		return ""
	}
}

// Absent says why an object that is not there is not known either, also where only a part of the cluster is; empty: it
// does not exist.
func (f Facts[T]) Absent(kinds, name, key string) string {
	if why := f.Unreadable(kinds, name, key); why != "" || f.Whole() {
		return why
	}
	return name + " " + f.Missing()
}
