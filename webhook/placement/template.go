package placement

import (
	"fmt"
	"slices"
	"strings"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// templates say which pool a Workspace's template stands for.
type templates struct {
	facts cluster.Facts[cluster.WorkspaceTemplate]
	// shared is where the Workspace controller looks for a template that the Workspace's own namespace lacks; empty: not known.
	shared string
}

// byTemplate finds the candidate that lists the template of a Workspace; nil: none. The Workspace controller labels the pod
// with the namespace that the Workspace names, or else with the Workspace's own, even where it took the template from its
// default namespace. problem says that nothing tells which pool is meant.
func (p *Pools) byTemplate(candidates []*Pool, labelled config.TemplateRef) (pool *Pool, problem string) {
	if labelled.Name == "" {
		return nil, ""
	}
	listing := func(is func(config.TemplateRef) bool) (found []*Pool) {
		for _, c := range candidates {
			if slices.ContainsFunc(c.Config.Templates, is) {
				found = append(found, c)
			}
		}
		return found
	}
	if found := listing(func(t config.TemplateRef) bool { return t == labelled }); len(found) > 0 {
		return found[0], ""
	}
	facts := p.templates.facts
	switch {
	case len(candidates) < 2, facts.Get(labelled.String()) != nil, facts.Malformed(labelled.String()) != "":
		return nil, "" // there is no choice, or it is no pool's
	case p.templates.shared != "":
		found := listing(func(t config.TemplateRef) bool {
			return t == config.TemplateRef{Namespace: p.templates.shared, Name: labelled.Name}
		})
		if len(found) > 0 {
			return found[0], ""
		}
		return nil, ""
	case !facts.Known():
		return nil, ""
	}
	found := listing(func(t config.TemplateRef) bool { return t.Name == labelled.Name })
	switch len(found) {
	case 0:
		return nil, fmt.Sprintf("WorkspaceTemplate %.100s does not exist, and no pool lists a template of that name", labelled)
	case 1:
		return found[0], ""
	default:
		return nil, fmt.Sprintf("WorkspaceTemplate %.100s does not exist, and the pools %s list templates of that name", labelled, names(found))
	}
}

// StandIn are the names of the pool's templates by which a pod may be found whose labelled template no pool lists: those in
// the Workspace controller's default namespace, or, where that is not known, all.
func (p *Pools) StandIn(pool *Pool) []string {
	if p.templates.shared == "" && !p.templates.facts.Known() {
		return nil
	}
	var found []string
	for _, t := range pool.Config.Templates {
		if p.templates.shared == "" || t.Namespace == p.templates.shared {
			found = append(found, t.Name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Unlisted are the templates that exist and that no pool lists, though some pool lists one of that name: what they are
// needs no guess.
func (p *Pools) Unlisted() []string {
	listed, named := map[string]bool{}, map[string]bool{}
	for _, pool := range p.list {
		for _, t := range pool.Config.Templates {
			listed[t.String()], named[t.Name] = true, true
		}
	}
	var found []string
	for key, t := range p.templates.facts.All() {
		if named[t.Name] && !listed[key] {
			found = append(found, key)
		}
	}
	for _, key := range p.templates.facts.AllMalformed() {
		if _, name, _ := strings.Cut(key, "/"); named[name] && !listed[key] {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}
