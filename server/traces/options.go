package traces

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Options configures New. The zero value disables traces.
type Options struct {
	// Endpoint is the URL that spans are posted to; empty disables traces.
	Endpoint string
	// Version is the version of this program.
	Version string
	// Sampler chooses the traces; nil uses OTEL_TRACES_SAMPLER or, without it, samples all traces and follows callers'
	// decisions.
	Sampler sdktrace.Sampler
	// Timeout bounds one request to the collector; 0 means 10 s.
	Timeout time.Duration
	// Queue is the maximum number of waiting spans, above which spans are dropped; 0 means 2048.
	Queue int
	// Batch is the maximum number of spans in a request; 0 means 512.
	Batch int
	// Interval is the time between requests; 0 means 5 s.
	Interval time.Duration
	// TLS is the client configuration; nil uses the defaults of net/http.
	TLS *tls.Config

	secrets []string // that the collector may echo
}

// EndpointError reports an invalid endpoint of the collector.
type EndpointError struct {
	Variable string // Variable is the name of the setting.
	// Problem completes a sentence that starts with the variable.
	// Problem is the predicate of a sentence about the variable.
	Problem string
}

// Error implements error.
func (e *EndpointError) Error() string { return e.Variable + " " + e.Problem }

// FromEnvironment reads the environment variables of OpenTelemetry
// (opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables and .../protocol/exporter). It rejects
// invalid values, which the specification would ignore, because missing traces are noticed only when they are needed.
// The SDK itself reads headers, compression, limits, and resource attributes. FromEnvironment returns an *EndpointError
// for an invalid endpoint.
func FromEnvironment(get func(string) string) (o Options, err error) {
	value := func(name string) string { return strings.TrimSpace(get("OTEL_" + name)) }
	// The setting for traces precedes the one for all signals.
	setting := func(name string) (variable, v string) {
		for _, variable := range []string{"EXPORTER_OTLP_TRACES_" + name, "EXPORTER_OTLP_" + name} {
			if v := value(variable); v != "" {
				return "OTEL_" + variable, v
			}
		}
		return "", ""
	}
	variable, endpoint := setting("ENDPOINT")
	if endpoint == "" || strings.EqualFold(value("SDK_DISABLED"), "true") || value("TRACES_EXPORTER") == "none" {
		return Options{}, nil
	}
	if exporter := value("TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return o, fmt.Errorf(
			"OTEL_TRACES_EXPORTER is %q, which is not supported: remove it or set it to otlp, or to none for no traces",
			exporter,
		)
	}
	if variable, protocol := setting(
		"PROTOCOL",
	); protocol != "" && protocol != "http/protobuf" &&
		protocol != "http/json" {
		return o, fmt.Errorf(
			"%s is %q, which is not supported: set it to http/protobuf, and the endpoint to the collector's port "+
				"for OTLP over HTTP, usually 4318",
			variable,
			protocol,
		)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		// not quoted, because it may contain a key
		return o, &EndpointError{variable, "is not a URL with http:// or https://; write it like http://collector:4318"}
	}
	if u.User != nil || u.RawQuery != "" {
		return o, &EndpointError{
			variable,
			"has a user or a query, which would not be sent: set credentials in OTEL_EXPORTER_OTLP_HEADERS, like " +
				"authorization=Basic%20…",
		}
	}
	if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u.Path = path.Join("/", u.Path, "v1/traces")
	} else if u.Path == "" {
		u.Path = "/"
	}
	o.Endpoint = u.String()
	if o.secrets, err = headerValues(setting("HEADERS")); err != nil {
		return o, err
	}
	if err := checkSampler(value("TRACES_SAMPLER"), value("TRACES_SAMPLER_ARG")); err != nil {
		return o, err
	}
	if o.TLS, err = certificates(setting); err != nil {
		return o, err
	}
	timeoutVariable, timeout := setting("TIMEOUT")
	o.Timeout, o.Interval = time.Millisecond, time.Millisecond
	for _, n := range []struct {
		variable, text string
		into           func(int)
	}{
		{timeoutVariable, timeout, func(ms int) { o.Timeout *= time.Duration(ms) }},
		{"OTEL_BSP_SCHEDULE_DELAY", value("BSP_SCHEDULE_DELAY"), func(ms int) { o.Interval *= time.Duration(ms) }},
		{"OTEL_BSP_EXPORT_TIMEOUT", value("BSP_EXPORT_TIMEOUT"), func(int) {}}, // read by the SDK
		{"OTEL_BSP_MAX_QUEUE_SIZE", value("BSP_MAX_QUEUE_SIZE"), func(n int) { o.Queue = n }},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", value("BSP_MAX_EXPORT_BATCH_SIZE"), func(n int) { o.Batch = n }},
	} {
		number, err := strconv.Atoi(n.text)
		if n.text == "" {
			number = 0
		} else if err != nil || number <= 0 || number > 1<<20 {
			return o, fmt.Errorf("%s is %q, but must be a number from 1 to %d", n.variable, n.text, 1<<20)
		}
		n.into(number)
	}
	return o, nil
}

// headerValues returns the values of headers, which are secrets. Its errors do not quote them.
func headerValues(variable, text string) (values []string, _ error) {
	for header := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(header, "=")
		plain, err := url.PathUnescape(value)
		if text != "" && (!ok || err != nil || strings.TrimSpace(name) == "") {
			return nil, fmt.Errorf(
				"%s cannot be read; headers are written like authorization=Bearer%%20KEY,x-tenant=one",
				variable,
			)
		}
		if plain = strings.TrimSpace(plain); plain != "" {
			values = append(values, plain)
		}
	}
	return values, nil
}

var samplers = []string{
	"always_on",
	"always_off",
	"traceidratio",
	"parentbased_always_on",
	"parentbased_always_off",
	"parentbased_traceidratio",
}

// checkSampler rejects values that the SDK would replace by its default.
func checkSampler(name, arg string) error {
	name = strings.ToLower(name)
	if name != "" && !slices.Contains(samplers, name) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER is %q, but must be one of %s", name, strings.Join(samplers, ", "))
	}
	if !strings.HasSuffix(name, "traceidratio") || arg == "" {
		return nil
	}
	if ratio, err := strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q, but must be a number from 0 to 1, such as 0.1", arg)
	}
	return nil
}

// certificates returns the TLS configuration with the collector's CA and the client certificate.
func certificates(setting func(string) (string, string)) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if variable, file := setting("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in %s", variable, file)
		}
	}
	variable, certificate := setting("CLIENT_CERTIFICATE")
	_, key := setting("CLIENT_KEY")
	if (certificate == "") != (key == "") {
		return nil, errors.New(
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY must be set together",
		)
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// withDefaults sets the defaults of the specification.
func (o Options) withDefaults() Options {
	set(&o.Timeout, 10*time.Second)
	set(&o.Interval, 5*time.Second)
	set(&o.Queue, sdktrace.DefaultMaxQueueSize)
	set(&o.Batch, min(sdktrace.DefaultMaxExportBatchSize, o.Queue))
	o.Batch = min(o.Batch, o.Queue)
	return o
}

func set[T comparable](to *T, value T) {
	if *to == *new(T) {
		*to = value
	}
}

// client returns a client that follows no redirects, because the headers may contain a key for the collector.
func (o Options) client() (*http.Client, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("send traces: http.DefaultTransport is not an *http.Transport")
	}
	transport := base.Clone()
	transport.MaxResponseHeaderBytes = 16 << 10
	transport.MaxIdleConnsPerHost = 1
	if o.TLS != nil {
		transport.TLSClientConfig = o.TLS.Clone()
	}
	return &http.Client{
		Transport:     transport,
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
