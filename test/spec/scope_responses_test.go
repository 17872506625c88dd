package spec_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

func kindIn(raw string) string {
	var f failure
	_ = json.Unmarshal([]byte(raw), &f)
	return f.Error.Type
}

// absentLike returns a value of the same form that names nothing.
func absentLike(kind string, value any) any {
	text, is := value.(string)
	switch {
	case !is:
		return params{"mark": uuid.NewString()}
	case uuid.Validate(text) == nil:
		return uuid.NewString()
	case strings.Contains(text, "@"):
		return uuid.NewString() + "@things.example"
	case strings.HasPrefix(text, "+1"):
		return fmt.Sprintf("+1555%07d", numbers.Add(1))
	case strings.HasSuffix(kind, "code"):
		return newPIN()
	}
	return "unknown " + uuid.NewString()
}

// without returns a response without the named value.
func without(raw string, value any) string {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			raw = without(raw, v)
		}
		return raw
	case params:
		for _, v := range value {
			raw = without(raw, v)
		}
		return raw
	}
	return strings.ReplaceAll(raw, fmt.Sprint(value), "<what was named>")
}

var (
	anyUUID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime  = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	anyToken = regexp.MustCompile(`seam_cst\w+|/connect/[\w-]+|"code":"\d+"`)
)

// identifiersIn returns all ids in a response.
func identifiersIn(raw string) (all []string) {
	for i := 8; i+28 <= len(raw); i++ {
		if raw[i] == '-' && raw[i+5] == '-' && raw[i+10] == '-' && raw[i+15] == '-' {
			all = append(all, raw[i-8:i+28])
		}
	}
	return all
}

// blurred returns a response without what differs in each.
func blurred(raw string) string {
	return anyToken.ReplaceAllString(
		anyTime.ReplaceAllString(anyUUID.ReplaceAllString(raw, "<id>"), "<time>"),
		"<token>",
	)
}
