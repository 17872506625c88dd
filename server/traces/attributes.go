package traces

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
)

// Attribute is an attribute of a span. Only the functions of this file create attributes, and server/docs/traces.md
// lists each of them. Identifiers are allowed. User input, codes, and credentials are not.
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

// method returns an HTTP method, or _OTHER: clients may send any word.
func method(name string) string {
	if slices.Contains(methods, name) {
		return name
	}
	return "_OTHER"
}

// Method is the method of an HTTP request.
func Method(name string) Attribute { return text("http.request.method", method(name)) }

// Route is a path of the contract, or the pattern of a vendor's path, without identifiers.
func Route(pattern string) Attribute { return text("http.route", pattern) }

// Status is the status code of an HTTP response; 0 means there was none.
func Status(code int) Attribute {
	if code == 0 {
		return Attribute{}
	}
	return number("http.response.status_code", code)
}

// RequestID is the response header seam-request-id.
func RequestID(id string) Attribute { return text("deviceaccess.request_id", id) }

// Workspace is the workspace that a request acts in.
func Workspace(id uuid.UUID) Attribute { return identifier("deviceaccess.workspace_id", id) }

// Replayed reports whether the response is that of an earlier request with the same Idempotency-Key.
func Replayed(yes bool) Attribute { return Attribute{attribute.Bool("deviceaccess.replayed", yes)} }

// ErrorType is a word for an error: error.type of a response, an SQLSTATE, or the class of a vendor's error.
func ErrorType(word string) Attribute { return text("error.type", word) }

// Lane is the lane of keyed work.
func Lane(name string) Attribute { return text("deviceaccess.lane", name) }

// keys are the attributes of each lane's keys.
var keys = map[string]string{
	"device":     "deviceaccess.device_id",
	"account":    "deviceaccess.connected_account_id",
	"endpoint":   "deviceaccess.webhook_id",
	"outbox":     "deviceaccess.workspace_id",
	"acs_system": "deviceaccess.acs_system_id",
}

// Key is the key that is being worked on.
func Key(lane string, id uuid.UUID) Attribute {
	if name, ok := keys[lane]; ok {
		return identifier(name, id)
	}
	return Attribute{}
}

// Account is the connected account of a vendor's request.
func Account(id uuid.UUID) Attribute { return identifier("deviceaccess.connected_account_id", id) }

// Webview is the connect webview that a browser has opened.
func Webview(id uuid.UUID) Attribute { return identifier("deviceaccess.connect_webview_id", id) }

// Webhook is the webhook of a delivery.
func Webhook(id uuid.UUID) Attribute { return identifier("deviceaccess.webhook_id", id) }

// Event is the event of a delivery.
func Event(id uuid.UUID) Attribute { return identifier("deviceaccess.event_id", id) }

// EventType is the type of the event of a delivery.
func EventType(name string) Attribute { return text("deviceaccess.event_type", name) }

// Outcome is a word for the result of the span.
func Outcome(word string) Attribute { return text("deviceaccess.outcome", word) }

// Database is db.system.name of a statement.
func Database() Attribute { return text("db.system.name", "postgresql") }

// Statement is the name of a query, never its text.
func Statement(name string) Attribute { return text("db.operation.name", name) }

// Rows is the number of rows that a statement returned or changed.
func Rows(n int64) Attribute { return number("db.response.returned_rows", int(n)) }

// BatchSize is the number of statements in a batch.
func BatchSize(n int) Attribute { return number("db.operation.batch.size", n) }

// Adapter is the kind of the called vendor.
func Adapter(name string) Attribute { return text("deviceaccess.adapter", name) }

// Operation is the vendor's name of the requested operation.
func Operation(name string) Attribute { return text("deviceaccess.operation", name) }

// ServerAddress returns the scheme, host, and port of a URL, and nothing else: paths, queries, and users may contain
// tokens.
func ServerAddress(address string) (out []Attribute) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	out = []Attribute{
		text("url.scheme", strings.ToLower(u.Scheme)),
		text("server.address", strings.ToLower(u.Hostname())),
	}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		out = append(out, number("server.port", port))
	}
	return out
}

// Pattern returns path with {id} in place of each segment that is not among words.
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
