package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// types is a set of JSON types.
type types uint8

const (
	text types = 1 << iota
	boolean
	number
	integer
	array
	object
)

var typeNames = map[string]types{
	"string": text, "boolean": boolean, "number": number, "integer": integer, "array": array, "object": object,
}

// shape is a compiled schema of the contract, so that requests need no lookups.
type shape struct {
	types    types
	nullable bool

	// For strings.
	minLength, maxLength int
	pattern              *regexp.Regexp
	format               *format
	enum                 []string

	// For numbers.
	min, max float64

	// For arrays.
	items              *shape
	minItems, maxItems int

	// For objects: either named properties, or any names with values of one shape.
	properties []*property // sorted by name
	values     *shape
}

type property struct {
	name     string
	shape    *shape
	required bool
	fallback []byte // the default as JSON; may be nil
}

// maxSafeInteger is the largest integer that all JSON readers represent exactly.
const maxSafeInteger = 1<<53 - 1

// compileShape returns an error for unsupported keywords, so that the contract cannot promise unchecked constraints.
func compileShape(schema *openapi3.Schema) (*shape, error) {
	s := &shape{
		minLength: int(schema.MinLength),
		maxLength: math.MaxInt,
		minItems:  int(schema.MinItems),
		maxItems:  math.MaxInt,
		min:       math.Inf(-1),
		max:       math.Inf(1),
	}
	for _, name := range schema.Type.Slice() {
		known, ok := typeNames[name]
		if !ok && name != "null" {
			return nil, fmt.Errorf("a request cannot have the type %q", name)
		}
		s.types |= known
		s.nullable = s.nullable || name == "null"
	}
	if s.types == 0 {
		return nil, fmt.Errorf("a schema of a request has no type: %q", schema.Description)
	}
	if schema.MaxLength != nil {
		s.maxLength = int(*schema.MaxLength)
	}
	if schema.MaxItems != nil {
		s.maxItems = int(*schema.MaxItems)
	}
	if s.types&integer != 0 {
		s.min, s.max = -maxSafeInteger, maxSafeInteger
	}
	if schema.Min != nil {
		s.min = *schema.Min
	}
	if schema.Max != nil {
		s.max = *schema.Max
	}
	for _, compile := range []func(*openapi3.Schema) error{s.compileText, s.compileParts, unchecked} {
		if err := compile(schema); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *shape) compileText(schema *openapi3.Schema) (err error) {
	for _, value := range schema.Enum {
		option, ok := value.(string)
		if !ok {
			return fmt.Errorf("an enum of a request has %v, which is no string", value)
		}
		s.enum = append(s.enum, option)
	}
	if schema.Pattern != "" {
		if s.pattern, err = regexp.Compile(schema.Pattern); err != nil {
			return fmt.Errorf("compile a pattern: %w", err)
		}
	}
	if schema.Format != "" && schema.Format != "double" {
		check, ok := formats[schema.Format]
		if !ok {
			return fmt.Errorf("a request has the unknown format %q", schema.Format)
		}
		s.format = &check
	}
	return nil
}

// compileParts compiles the items of arrays and the properties of objects.
func (s *shape) compileParts(schema *openapi3.Schema) (err error) {
	if schema.Items != nil {
		if s.items, err = compileShape(schema.Items.Value); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	if schema.AdditionalProperties.Schema != nil {
		if s.values, err = compileShape(schema.AdditionalProperties.Schema.Value); err != nil {
			return fmt.Errorf("values: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		value := schema.Properties[name].Value
		p := &property{name: name, required: slices.Contains(schema.Required, name)}
		if p.shape, err = compileShape(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if value.Default != nil {
			if p.fallback, err = json.Marshal(value.Default); err != nil {
				return fmt.Errorf("default of %s: %w", name, err)
			}
		}
		s.properties = append(s.properties, p)
	}
	return nil
}

// unchecked returns an error if a schema has keywords that a shape does not support.
func unchecked(schema *openapi3.Schema) error {
	rest := *schema
	for _, known := range []any{
		&rest.Extensions, &rest.Description, &rest.Deprecated, &rest.Default, &rest.Type, &rest.MinLength, &rest.MaxLength,
		&rest.Pattern, &rest.Format, &rest.Enum, &rest.Min, &rest.Max, &rest.Items, &rest.MinItems, &rest.MaxItems,
		&rest.Required, &rest.Properties, &rest.AdditionalProperties.Schema,
	} {
		reflect.ValueOf(known).Elem().SetZero()
	}
	if !reflect.DeepEqual(rest, openapi3.Schema{}) {
		return fmt.Errorf(
			"a schema of a request uses a keyword that requests are not checked for: %q",
			schema.Description,
		)
	}
	return nil
}

// property returns a property by name, or nil.
func (s *shape) property(name string) *property {
	i, found := slices.BinarySearchFunc(
		s.properties,
		name,
		func(p *property, name string) int { return strings.Compare(p.name, name) },
	)
	if !found {
		return nil
	}
	return s.properties[i]
}
