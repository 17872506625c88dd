package conformance

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
)

// validate returns where a value violates a schema. Each place is a JSON pointer whose indexes and free keys are *. It
// replaces the validator of kin-openapi, which reports only that a value fits none of the 114 variants of an event,
// after it has tried all of them.
func validate(schema *openapi3.Schema, value any) []string {
	var j validator
	j.visit("", schema, value)
	slices.Sort(j.failures)
	return slices.Compact(j.failures)
}

type validator struct{ failures []string }

func (j *validator) fail(at, format string, args ...any) {
	if at == "" {
		at = "/"
	}
	j.failures = append(j.failures, at+": "+fmt.Sprintf(format, args...))
}

func (j *validator) visit(at string, schema *openapi3.Schema, value any) {
	if value == nil && (schema.Nullable || schema.IsEmpty()) {
		return
	}
	for _, part := range schema.AllOf {
		j.visit(at, part.Value, value)
	}
	if variants := slices.Concat(schema.OneOf, schema.AnyOf); len(variants) > 0 {
		j.variants(at, variants, value)
	}
	if len(schema.Enum) > 0 && !contains(schema.Enum, value) {
		j.fail(at, "%v is not one of its values", value)
		return
	}
	if schema.Type == nil {
		return
	}
	if kind := kindOf(
		value,
	); !schema.Type.Includes(kind) &&
		(kind != openapi3.TypeNumber || !schema.Type.Includes(openapi3.TypeInteger)) {
		j.fail(at, "is %s, and not %s", kind, strings.Join(schema.Type.Slice(), " or "))
		return
	}
	switch value := value.(type) {
	case map[string]any:
		j.object(at, schema, value)
	case []any:
		if schema.Items != nil {
			for _, item := range value {
				j.visit(at+"/*", schema.Items.Value, item)
			}
		}
	case string:
		j.text(at, schema, value)
	case float64:
		if schema.Type.Is(openapi3.TypeInteger) && value != float64(int64(value)) {
			j.fail(at, "is no integer")
		}
		if schema.Min != nil && value < *schema.Min || schema.Max != nil && value > *schema.Max {
			j.fail(at, "is out of bounds")
		}
	}
}

func (j *validator) object(at string, schema *openapi3.Schema, value map[string]any) {
	for _, name := range schema.Required {
		if _, there := value[name]; !there {
			j.fail(at+"/"+name, "is missing")
		}
	}
	for name, field := range value {
		switch property := schema.Properties[name]; {
		case property != nil:
			j.visit(at+"/"+name, property.Value, field)
		case schema.AdditionalProperties.Schema != nil:
			j.visit(at+"/*", schema.AdditionalProperties.Schema.Value, field)
		case schema.AdditionalProperties.Has != nil && !*schema.AdditionalProperties.Has:
			j.fail(at+"/"+name, "is not known")
		}
	}
}

func (j *validator) text(at string, schema *openapi3.Schema, value string) {
	var err error
	switch schema.Format {
	case "uuid":
		err = uuid.Validate(value)
	case "date-time":
		_, err = time.Parse(time.RFC3339Nano, value)
	case "uri":
		_, err = url.ParseRequestURI(value)
	}
	if err != nil {
		j.fail(at, "is no %s", schema.Format)
	}
	if n := uint64(
		utf8.RuneCountInString(value),
	); n < schema.MinLength ||
		schema.MaxLength != nil && n > *schema.MaxLength {
		j.fail(at, "is too short or too long")
	}
}

// variants validates against the variant that the value's fields with fixed values select.
func (j *validator) variants(at string, variants openapi3.SchemaRefs, value any) {
	var best []string
	found := false
	for _, v := range variants {
		if !isOf(v.Value, value) {
			continue
		}
		var one validator
		one.visit(at, v.Value, value)
		if len(one.failures) == 0 {
			return
		}
		if !found || len(one.failures) < len(best) {
			best, found = one.failures, true
		}
	}
	if found {
		j.failures = append(j.failures, best...)
		return
	}
	object, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		fixed, known := false, false
		for _, v := range variants {
			if property := v.Value.Properties[name]; property != nil && len(property.Value.Enum) > 0 {
				fixed = true
				known = known || contains(property.Value.Enum, object[name])
			}
		}
		if fixed && !known {
			j.fail(at+"/"+name, "%v is not one of its values", object[name])
			return
		}
	}
	j.fail(at, "is none of the variants")
}

// isOf reports whether no field of the value contradicts the fixed values of the variant.
func isOf(variant *openapi3.Schema, value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return true
	}
	for name, property := range variant.Properties {
		if field, there := object[name]; there && len(property.Value.Enum) > 0 &&
			!contains(property.Value.Enum, field) {
			return false
		}
	}
	return true
}

func contains(enum []any, value any) bool {
	return slices.ContainsFunc(enum, func(e any) bool { return reflect.DeepEqual(e, value) })
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return openapi3.TypeNull
	case bool:
		return openapi3.TypeBoolean
	case float64:
		return openapi3.TypeNumber
	case string:
		return openapi3.TypeString
	case []any:
		return openapi3.TypeArray
	}
	return openapi3.TypeObject
}
