package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// CompareContract compares the paths that are in both descriptions: methods, security,
// parameters, and the keys of responses. It
// returns unlisted differences, and stale rows of the first table of differences.md, which lists these.
func (r *Checker) CompareContract() (unlisted, stale []string) {
	used := map[Difference]bool{}
	for _, path := range slices.Sorted(maps.Keys(r.ours.Paths.Map())) {
		published := r.published.Paths.Value(path)
		if published == nil {
			published = &openapi3.PathItem{}
		}
		for _, what := range r.compare(r.ours.Paths.Value(path), published) {
			i := slices.IndexFunc(r.differences, func(d Difference) bool { return d.excuses(path, what) })
			if i < 0 {
				unlisted = append(unlisted, path+" "+what)
				continue
			}
			used[r.differences[i]] = true
		}
	}
	for _, d := range r.differences {
		if d.ofContract() && !used[d] {
			stale = append(stale, d.Path+" "+d.What)
		}
	}
	return unlisted, stale
}

// ofContract reports whether the difference is one of the contract. Those of responses start with a place in the
// response.
func (d Difference) ofContract() bool { return d.What[0] != '/' && d.What != missingPath }

func (r *Checker) compare(ours, published *openapi3.PathItem) (differences []string) {
	schemes, fallback := r.ours.Components.SecuritySchemes, r.ours.Security
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	if published.Post == nil {
		differ("is not published")
		return differences
	}
	for _, method := range methodsOf(published) {
		if ours.GetOperation(method) == nil {
			differ("does not take %s", method)
		}
	}
	for _, scheme := range slices.Sorted(maps.Keys(schemes)) {
		// Other headers accompany a credential.
		if schemes[scheme].Value.Type != "http" && scheme != "publishable_key" {
			continue
		}
		switch a, b := accepts(ours, fallback, scheme), accepts(published, nil, scheme); {
		case a && !b:
			differ("accepts %s, which is not published", scheme)
		case b && !a:
			differ("does not accept %s", scheme)
		}
	}
	mine, theirs := bodyOf(ours), bodyOf(published)
	for _, name := range slices.Sorted(maps.Keys(mine.Properties)) {
		if theirs.Properties[name] == nil {
			differ("takes %s, which is not published", name)
			continue
		}
		a, b := slices.Contains(mine.Required, name), slices.Contains(theirs.Required, name)
		if a != b {
			differ("requires %s: %t, published: %t", name, a, b)
		}
		for _, what := range compareValues(mine.Properties[name].Value, theirs.Properties[name].Value) {
			differ("%s %s", name, what)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs.Properties)) {
		if mine.Properties[name] == nil {
			differ("does not take %s", name)
		}
	}
	if key, _ := published.Post.Extensions["x-response-key"].(string); key != "" &&
		!slices.Contains(answerOf(ours).Required, key) {
		differ("does not promise %s in its answer", key)
	}
	for _, key := range answerOf(published).Required {
		if !slices.Contains(answerOf(ours).Required, key) {
			differ("does not promise %s, which is published", key)
		}
	}
	return differences
}

// accepts reports whether an operation accepts the credentials of a security scheme.
func accepts(item *openapi3.PathItem, fallback openapi3.SecurityRequirements, scheme string) bool {
	accepted := fallback
	if item.Post.Security != nil {
		accepted = *item.Post.Security
	}
	return slices.ContainsFunc(accepted, func(one openapi3.SecurityRequirement) bool {
		_, named := one[scheme]
		return named
	})
}

// methodsOf returns the methods of a path before they are expanded.
func methodsOf(item *openapi3.PathItem) []string {
	methods := []string{"POST"}
	more, _ := item.Post.Extensions["x-methods"].([]any)
	for _, method := range more {
		methods = append(methods, fmt.Sprint(method))
	}
	return methods
}

// bodyOf returns the schema of the parameters. For variants it has the fields of all, and requires what all require.
func bodyOf(item *openapi3.PathItem) *openapi3.Schema {
	if item.Post.RequestBody == nil {
		return openapi3.NewObjectSchema()
	}
	schema := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
	parts := slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf)
	if len(parts) == 0 {
		return schema
	}
	whole := openapi3.NewObjectSchema()
	for i, part := range parts {
		maps.Copy(whole.Properties, part.Value.Properties)
		required := part.Value.Required
		if i > 0 && len(schema.AllOf) == 0 {
			required = slices.DeleteFunc(
				slices.Clone(whole.Required),
				func(name string) bool { return !slices.Contains(required, name) },
			)
			whole.Required = nil
		}
		whole.Required = append(whole.Required, required...)
	}
	return whole
}

// compareValues returns the values that the published description allows and ours does not.
func compareValues(ours, published *openapi3.Schema) (differences []string) {
	if kinds := narrower(ours, published); len(kinds) > 0 {
		differences = append(differences, fmt.Sprintf("takes no %v", kinds))
	}
	if len(ours.Enum) > 0 {
		for _, value := range published.Enum {
			if !contains(ours.Enum, value) {
				differences = append(differences, fmt.Sprintf("does not take %v", value))
			}
		}
		if len(published.Enum) == 0 {
			differences = append(differences, "takes fixed values only")
		}
	}
	if ours.Items != nil && published.Items != nil {
		for _, what := range compareValues(ours.Items.Value, published.Items.Value) {
			differences = append(differences, "items "+what)
		}
	}
	return differences
}

// narrower returns the types of the published schema that ours lacks.
func narrower(ours, published *openapi3.Schema) (kinds []string) {
	mine, theirs := typesOf(ours), typesOf(published)
	for _, kind := range theirs {
		if len(mine) > 0 && !slices.Contains(mine, kind) && (kind != "number" || !slices.Contains(mine, "integer")) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func typesOf(schema *openapi3.Schema) []string {
	var kinds []string
	if schema.Type != nil {
		kinds = schema.Type.Slice()
	}
	for _, v := range slices.Concat(schema.OneOf, schema.AnyOf, schema.AllOf) {
		kinds = append(kinds, typesOf(v.Value)...)
	}
	if schema.Nullable {
		kinds = append(kinds, openapi3.TypeNull)
	}
	return kinds
}
