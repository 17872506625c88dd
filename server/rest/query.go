package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// strictParameter selects strict parsing, which accepts only what the serializer of the SDKs writes. The default is
// lenient.
const strictParameter = "_strict"

var (
	truthy = []string{"true", "True", "TRUE", "yes", "Yes", "YES", "1"}
	falsy  = []string{"false", "False", "FALSE", "no", "No", "NO", "0"}
)

// argument is a query parameter with all its values.
type argument struct {
	name     string   // as sent, without brackets
	path     []string // its location in the body
	shape    *shape
	repeated []string // k=a&k=b
	brackets []string // k[]=a&k[]=b
}

// parseQuery converts a query string to the parameters of a body, with the types of the contract. Unknown parameters
// are ignored. The rules are those of @seamapi/url-search-params-parser.
func parseQuery(query string, body *shape) (map[string]any, error) {
	arguments, strict, err := collect(query, body)
	if err != nil {
		return nil, err
	}
	params := make(map[string]any, len(arguments))
	for _, a := range arguments {
		value, err := a.value(strict)
		if err == nil {
			err = setArgument(params, a, value)
		}
		if err != nil {
			return nil, err
		}
	}
	return params, nil
}

// collect groups the values by parameter, in the order of the query string.
func collect(query string, body *shape) (arguments []*argument, strict bool, err error) {
	known := map[string]*argument{}
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		if name, err = decode(name); err == nil {
			value, err = decode(value)
		}
		if err != nil {
			return nil, false, err
		}
		if name == strictParameter {
			strict = slices.Contains(truthy, value)
			continue
		}
		base, bracketed := strings.CutSuffix(name, "[]")
		a := known[base]
		if a == nil {
			path, shape, err := body.locate(base, nil)
			if err != nil {
				return nil, false, unparseable(name, "%s", err)
			}
			if shape == nil {
				continue
			}
			a = &argument{name: base, path: path, shape: shape}
			known[base] = a
			arguments = append(arguments, a)
		}
		if bracketed {
			a.brackets = append(a.brackets, value)
		} else {
			a.repeated = append(a.repeated, value)
		}
	}
	return arguments, strict, nil
}

func decode(s string) (string, error) {
	decoded, err := url.QueryUnescape(s)
	if err != nil || !utf8.ValidString(decoded) {
		return "", &failure{
			status:  http.StatusBadRequest,
			kind:    invalidQueryParams,
			message: "Could not parse the query string: it is not percent-encoded UTF-8",
		}
	}
	return decoded, nil
}

// locate resolves a dotted name. The shape is nil if the contract does not have the name.
func (s *shape) locate(name string, above []string) (path []string, leaf *shape, err error) {
	if p := s.property(name); p != nil {
		return append(above, name), p.shape, nil
	}
	if s.values != nil {
		if strings.Contains(name, ".") {
			return nil, nil, fmt.Errorf(
				"is nested inside a record parameter, but a record value type may not be an object, array, or record",
			)
		}
		return append(above, name), s.values, nil
	}
	first, rest, dotted := strings.Cut(name, ".")
	if p := s.property(first); dotted && p != nil && p.shape.types&object != 0 {
		return p.shape.locate(rest, append(above, first))
	}
	return nil, nil, nil
}

// setArgument stores a value at its path.
func setArgument(params map[string]any, a *argument, value any) error {
	last := len(a.path) - 1
	for _, name := range a.path[:last] {
		inner, given := params[name]
		if !given {
			inner = map[string]any{}
			params[name] = inner
		}
		object, ok := inner.(map[string]any)
		if !ok {
			return unparseable(name, "conflicts with the nested parameter '%s'", a.name)
		}
		params = object
	}
	if _, given := params[a.path[last]]; given {
		return unparseable(a.name, "conflicts with a parameter nested in it")
	}
	params[a.path[last]] = value
	return nil
}

func (a *argument) value(strict bool) (any, error) {
	if a.shape.types&array != 0 {
		return a.array(strict)
	}
	if len(a.repeated) == 0 {
		return nil, unparseable(a.name+"[]", "uses the bracket array format but is not an array parameter")
	}
	if len(a.repeated) > 1 {
		return nil, unparseable(a.name, "has repeated values but is not an array parameter")
	}
	return scalar(a.shape, a.repeated[0], strict), nil
}

func (a *argument) array(strict bool) (any, error) {
	name, values := a.name, a.repeated
	switch {
	case strict && len(a.brackets) > 0:
		return nil, unparseable(
			name+"[]",
			"uses the bracket array format, which is only parsed without %s",
			strictParameter,
		)
	case len(a.brackets) > 0 && len(a.repeated) > 0:
		return nil, unparseable(name, "mixes the repeated and bracket array formats")
	case len(a.brackets) > 0:
		name, values = name+"[]", a.brackets
	}
	if len(values) == 1 && isEmpty(values[0], strict) {
		return []any{}, nil
	}
	if hasComma := func(v string) bool { return strings.Contains(v, ",") }; !strict &&
		slices.ContainsFunc(values, hasComma) {
		switch {
		case len(a.brackets) > 0:
			return nil, unparseable(name, `uses the bracket array format with a value containing a comma ","`)
		case len(values) > 1:
			return nil, unparseable(
				name,
				`mixes the comma and repeated array formats, or repeats a value containing a comma ","`,
			)
		}
		values = strings.Split(values[0], ",")
	}
	items := make([]any, 0, len(values))
	for _, v := range values {
		if isEmpty(v, strict) {
			return nil, unparseable(name, "mixes empty values with other values")
		}
		items = append(items, scalar(a.shape.items, v, strict))
	}
	return items, nil
}

// scalar parses a value. Invalid values stay text, so that the check reports the expected type. Numbers also stay
// text, because the check reads them from strings.
func scalar(s *shape, v string, strict bool) any {
	yes, no := truthy[:1], falsy[:1]
	if !strict && s.types&text == 0 {
		v = strings.TrimSpace(v)
		yes, no = truthy, falsy
	}
	switch {
	case v == "":
		return nil
	case s.types&boolean != 0 && slices.Contains(yes, v):
		return true
	case s.types&boolean != 0 && slices.Contains(no, v):
		return false
	}
	return v
}

func isEmpty(v string, strict bool) bool {
	if !strict {
		v = strings.TrimSpace(v)
	}
	return v == ""
}

func unparseable(name, format string, args ...any) error {
	message := fmt.Sprintf("Could not parse parameter: '%s' ", name) + fmt.Sprintf(format, args...)
	return &failure{status: http.StatusBadRequest, kind: invalidQueryParams, message: message}
}

// formatQuery encodes parameters like the SDKs in strict mode. Values that a query string cannot express, such as an
// empty string, change in parseQuery, so callers must compare.
func formatQuery(s *shape, params map[string]any) url.Values {
	query := url.Values{}
	addToQuery(query, s, "", params)
	return query
}

func addToQuery(query url.Values, s *shape, prefix string, params map[string]any) {
	for name, value := range params {
		p, values := s.property(name), s.values
		switch {
		case p != nil:
			values = p.shape
		case values == nil:
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			addToQuery(query, values, prefix+name+".", value)
		case []any:
			for _, item := range value {
				query.Add(prefix+name, formatScalar(item))
			}
			if len(value) == 0 {
				query.Add(prefix+name, "")
			}
		case nil:
			if values.nullable {
				query.Add(prefix+name, "")
			}
		default:
			query.Add(prefix+name, formatScalar(value))
		}
	}
}

// formatScalar formats a scalar, numbers without an exponent.
func formatScalar(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
