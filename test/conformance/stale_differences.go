package conformance

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// StaleDifferences returns the listed differences of responses that the published description allows.
func (r *Checker) StaleDifferences() (stale []string) {
	for _, d := range r.differences {
		if d.ofContract() || d.ofResource() || d.What == missingPath {
			continue
		}
		published := r.published.Paths.Value(d.Path)
		if published == nil || r.ours.Paths.Value(d.Path) == nil || !forbids(answerOf(published), d.What) {
			stale = append(stale, d.Path+" "+d.What)
		}
	}
	return stale
}

// forbids reports whether a schema forbids what the Checker has reported.
func forbids(schema *openapi3.Schema, what string) bool {
	pointer, complaint, _ := strings.Cut(what, ": ")
	steps := strings.Split(pointer, "/")[1:]
	last := steps[len(steps)-1]
	if complaint == "is missing" {
		return slices.ContainsFunc(
			schemasAt(schema, steps[:len(steps)-1]),
			func(s *openapi3.Schema) bool { return slices.Contains(s.Required, last) },
		)
	}
	if kind, found := strings.CutPrefix(complaint, "is null, and not "); found {
		return slices.ContainsFunc(
			schemasAt(schema, steps),
			func(s *openapi3.Schema) bool { return s.Type.Is(kind) && !s.Nullable },
		)
	}
	value, found := strings.CutSuffix(complaint, " is not one of its values")
	at := schemasAt(schema, steps)
	return found && len(at) > 0 &&
		!slices.ContainsFunc(at, func(s *openapi3.Schema) bool { return len(s.Enum) == 0 || contains(s.Enum, value) })
}

// schemasAt returns the schemas of all variants for a place in a value.
func schemasAt(schema *openapi3.Schema, steps []string) (found []*openapi3.Schema) {
	if parts := slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf); len(parts) > 0 {
		for _, part := range parts {
			found = append(found, schemasAt(part.Value, steps)...)
		}
		return found
	}
	if len(steps) == 0 {
		return []*openapi3.Schema{schema}
	}
	next := schema.Properties[steps[0]]
	if steps[0] == "*" {
		next = schema.Items
	}
	if next == nil {
		return nil
	}
	return schemasAt(next.Value, steps[1:])
}
