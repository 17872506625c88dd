package traces

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
)

// Attribute is something that may be told of a span. There are no others than those made here, and server/docs/traces.md
// has each of them. Identifiers may be told; what people have entered, what opens a door, and what proves who somebody is
// may not.
type Attribute struct{ kv attribute.KeyValue }

func text(key, value string) Attribute { return Attribute{attribute.String(key, value)} }
func number(key string, n int) Attribute {
	return Attribute{attribute.Int(key, n)}
}

func identifier(key string, id uuid.UUID) Attribute {
	if id == uuid.Nil {
		return Attribute{}
	}
	return text(key, id.String())
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// method is one of HTTP's: a stranger may send any word.
func method(name string) string {
	if slices.Contains(methods, name) {
		return name
	}
	return "_OTHER"
}

// Method is that of an HTTP request.
func Method(name string) Attribute { return text("http.request.method", method(name)) }

// Route is a path of the contract, or the pattern of one of a vendor: it has no identifiers.
func Route(pattern string) Attribute { return text("http.route", pattern) }

// Status is that of an HTTP answer; 0: there was none.
func Status(code int) Attribute {
	if code == 0 {
		return Attribute{}
	}
	return number("http.response.status_code", code)
}

// RequestID is what the answer has in seam-request-id.
func RequestID(id string) Attribute { return text("deviceaccess.request_id", id) }

// Workspace is the one that a request acts in.
func Workspace(id uuid.UUID) Attribute { return identifier("deviceaccess.workspace_id", id) }

// Replayed is whether the answer was that to an earlier request with the same Idempotency-Key.
func Replayed(yes bool) Attribute { return Attribute{attribute.Bool("deviceaccess.replayed", yes)} }

// ErrorType is a word for what went wrong: error.type of an answer, an SQLSTATE, the class of a vendor's error.
func ErrorType(word string) Attribute { return text("error.type", word) }

// Lane is a kind of work.
func Lane(name string) Attribute { return text("deviceaccess.lane", name) }

// keys are what the identifiers of lanes are of.
var keys = map[string]string{"device": "deviceaccess.device_id", "account": "deviceaccess.connected_account_id", "endpoint": "deviceaccess.webhook_id",
	"outbox": "deviceaccess.workspace_id", "acs_system": "deviceaccess.acs_system_id"}

// Key is what is worked on.
func Key(lane string, id uuid.UUID) Attribute {
	if name, ok := keys[lane]; ok {
		return identifier(name, id)
	}
	return Attribute{}
}

// Account is the one that a vendor has sent something for.
func Account(id uuid.UUID) Attribute { return identifier("deviceaccess.connected_account_id", id) }

// Webview is the page that somebody has opened.
func Webview(id uuid.UUID) Attribute { return identifier("deviceaccess.connect_webview_id", id) }

// Webhook is the one that something is sent to.
func Webhook(id uuid.UUID) Attribute { return identifier("deviceaccess.webhook_id", id) }

// Event is what is sent, and of what type.
func Event(id uuid.UUID) Attribute    { return identifier("deviceaccess.event_id", id) }
func EventType(name string) Attribute { return text("deviceaccess.event_type", name) }

// Outcome is a word for how it has ended.
func Outcome(word string) Attribute { return text("deviceaccess.outcome", word) }

// Database is what db.system.name is for statements.
func Database() Attribute { return text("db.system.name", "postgresql") }

// Statement is the name that a query has, never its text.
func Statement(name string) Attribute { return text("db.operation.name", name) }

// Rows is how many rows a statement has returned or changed.
func Rows(n int64) Attribute { return number("db.response.returned_rows", int(n)) }

// BatchSize is how many statements are sent at once.
func BatchSize(n int) Attribute { return number("db.operation.batch.size", n) }

// Adapter is the kind of vendor that is called.
func Adapter(name string) Attribute { return text("deviceaccess.adapter", name) }

// Operation is what the vendor is asked to do, as it names that itself.
func Operation(name string) Attribute { return text("deviceaccess.operation", name) }

// At are the scheme, the host and the port of a URL, and nothing else of it: paths, queries and users may hold tokens.
func At(address string) (out []Attribute) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	out = []Attribute{text("url.scheme", strings.ToLower(u.Scheme)), text("server.address", strings.ToLower(u.Hostname()))}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		out = append(out, number("server.port", port))
	}
	return out
}

// Pattern is a path without identifiers: the segments that are among words stay, of the others only that they are there.
func Pattern(path string, words ...string) string {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if s != "" && !slices.Contains(words, s) {
			segments[i] = "{id}"
		}
	}
	return strings.Join(segments, "/")
}
