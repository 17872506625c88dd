package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// issue is a violation of the contract: its location, and a message in the style of zod. The message never contains
// the value.
type issue struct {
	path    []string
	message string
	domain  bool // the domain also reports it, with its own error type
}

// maxIssues bounds the number of issues in a response.
const maxIssues = 100

// checker writes values in canonical form: only known properties, with the types of the contract, sorted by name. It
// continues after a violation to report all of them.
type checker struct {
	out    []byte
	path   []string
	issues []issue
	// withDefaults reports whether defaults are filled in.
	withDefaults bool
}

// canonical encodes the parameters of a request as canonical JSON.
func canonical(s *shape, params map[string]any, withDefaults bool) ([]byte, []issue) {
	c := checker{out: make([]byte, 0, 256), withDefaults: withDefaults}
	c.object(s, params)
	return c.out, c.issues
}

func (c *checker) report(format string, args ...any) {
	c.add(issue{message: fmt.Sprintf(format, args...)})
}

func (c *checker) add(i issue) {
	if len(c.issues) < maxIssues {
		i.path = slices.Clone(c.path)
		c.issues = append(c.issues, i)
	}
}

func (c *checker) value(s *shape, v any) {
	switch v := v.(type) {
	case nil:
		if s.nullable {
			c.out = append(c.out, "null"...)
			return
		}
	case string:
		if s.types&text != 0 {
			c.text(s, v)
			return
		}
		if f, ok := parseNumber(v); ok && s.types&(number|integer) != 0 {
			c.number(s, f)
			return
		}
	case float64:
		if s.types&(number|integer) != 0 {
			c.number(s, v)
			return
		}
	case bool:
		if s.types&boolean != 0 {
			c.out = strconv.AppendBool(c.out, v)
			return
		}
	case []any:
		if s.types&array != 0 {
			c.array(s, v)
			return
		}
	case map[string]any:
		if s.types&object != 0 {
			c.object(s, v)
			return
		}
	}
	c.mismatch(s, v)
}

func (c *checker) mismatch(s *shape, v any) {
	expected := ""
	for name, t := range typeNames {
		if s.types == t {
			expected = name
		}
	}
	switch {
	case len(s.enum) > 0:
		c.report("Expected %s, received %s", options(s.enum), typeOf(v))
	case expected == "":
		c.report("Invalid input")
	case expected == "integer":
		c.report("Expected number, received %s", typeOf(v))
	default:
		c.report("Expected %s, received %s", expected, typeOf(v))
	}
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func options(enum []string) string { return "'" + strings.Join(enum, "' | '") + "'" }

func (c *checker) text(s *shape, v string) {
	switch n := utf8.RuneCountInString(v); {
	case n < s.minLength:
		c.report("String must contain at least %d character(s)", s.minLength)
	case n > s.maxLength:
		c.report("String must contain at most %d character(s)", s.maxLength)
	case strings.IndexByte(v, 0) >= 0: // PostgreSQL cannot store it
		c.report("String must not contain a null character")
	case s.format != nil:
		if problem := s.format.problem(v); problem != "" {
			c.add(issue{message: problem, domain: s.format.domain})
		}
	}
	if s.pattern != nil && !s.pattern.MatchString(v) {
		c.report("Invalid, must match %s", s.pattern)
	}
	if s.enum != nil && !slices.Contains(s.enum, v) {
		c.report("Invalid enum value. Expected %s", options(s.enum))
	}
	c.out = appendString(c.out, v)
}

func (c *checker) number(s *shape, v float64) {
	whole := s.types&integer != 0
	switch {
	case whole && v != math.Trunc(v):
		c.report("Expected integer, received float")
	case whole && v < s.min && s.min == 1:
		c.report("Number must be greater than 0")
	case v < s.min:
		c.report("Number must be greater than or equal to %s", formatScalar(s.min))
	case v > s.max:
		c.report("Number must be less than or equal to %s", formatScalar(s.max))
	}
	if whole {
		c.out = strconv.AppendInt(c.out, int64(v), 10)
	} else {
		c.out = strconv.AppendFloat(c.out, v, 'g', -1, 64)
	}
}

func (c *checker) array(s *shape, v []any) {
	if len(v) < s.minItems {
		c.report("Array must contain at least %d element(s)", s.minItems)
	} else if len(v) > s.maxItems {
		c.report("Array must contain at most %d element(s)", s.maxItems)
	}
	c.out = append(c.out, '[')
	for i, item := range v {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.path = append(c.path, strconv.Itoa(i))
		c.value(s.items, item)
		c.path = c.path[:len(c.path)-1]
	}
	c.out = append(c.out, ']')
}

func (c *checker) object(s *shape, v map[string]any) {
	c.out = append(c.out, '{')
	for _, p := range s.properties {
		value, given := v[p.name]
		switch {
		case given && (value != nil || p.shape.nullable):
			c.member(p.name, p.shape, value)
		case p.required:
			c.path = append(c.path, p.name)
			c.report(required)
			c.path = c.path[:len(c.path)-1]
		case p.fallback != nil && c.withDefaults:
			c.name(p.name)
			c.out = append(c.out, p.fallback...)
		}
	}
	if s.values != nil {
		for _, name := range slices.Sorted(maps.Keys(v)) {
			c.member(name, s.values, v[name])
		}
	}
	c.out = append(c.out, '}')
}

func (c *checker) member(name string, s *shape, v any) {
	c.path = append(c.path, name)
	if strings.IndexByte(name, 0) >= 0 {
		c.report("Name must not contain a null character")
	}
	c.name(name)
	c.value(s, v)
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) name(name string) {
	if c.out[len(c.out)-1] != '{' {
		c.out = append(c.out, ',')
	}
	c.out = append(appendString(c.out, name), ':')
}

// appendString writes s as a JSON string.
func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b >= utf8.RuneSelf || b == '"' || b == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// parseNumber parses a JSON number. The standard parser would also accept hexadecimal numbers, Inf and NaN.
func parseNumber(s string) (float64, bool) {
	if s == "" || strings.Trim(s, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}
