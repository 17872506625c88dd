package traces_test

import (
	"bytes"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

type environment map[string]string

func (e environment) options() (traces.Options, error) {
	return traces.FromEnvironment(func(name string) string { return e[strings.TrimPrefix(name, "OTEL_")] })
}

func TestFromEnvironment_Endpoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environment
		endpoint string
	}{
		"nothing":             {environment{}, ""},
		"other settings only": {environment{"TRACES_SAMPLER": "always_on", "SERVICE_NAME": "x"}, ""},
		"the base": {
			environment{"EXPORTER_OTLP_ENDPOINT": "http://collector:4318"},
			"http://collector:4318/v1/traces",
		},
		"a base with a path": {
			environment{"EXPORTER_OTLP_ENDPOINT": "https://collector/otlp/"},
			"https://collector/otlp/v1/traces",
		},
		"traces' own": {
			environment{"EXPORTER_OTLP_ENDPOINT": "http://a", "EXPORTER_OTLP_TRACES_ENDPOINT": "http://b:1/x"},
			"http://b:1/x",
		},
		"traces' own, no path": {environment{"EXPORTER_OTLP_TRACES_ENDPOINT": "http://b:1"}, "http://b:1/"},
		"disabled":             {environment{"EXPORTER_OTLP_ENDPOINT": "http://a", "SDK_DISABLED": "TRUE"}, ""},
		"no exporter":          {environment{"EXPORTER_OTLP_ENDPOINT": "http://a", "TRACES_EXPORTER": "none"}, ""},
		"all": {
			environment{
				"EXPORTER_OTLP_ENDPOINT":        "http://a",
				"TRACES_EXPORTER":               "otlp",
				"EXPORTER_OTLP_PROTOCOL":        "grpc",
				"EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
				"TRACES_SAMPLER":                "parentbased_traceidratio",
				"TRACES_SAMPLER_ARG":            "0.25",
			},
			"http://a/v1/traces",
		},
	} {
		if o, err := c.options(); err != nil || o.Endpoint != c.endpoint {
			t.Errorf("%s: %q, %v; want %q", name, o.Endpoint, err, c.endpoint)
		}
	}
	o, err := environment{
		"EXPORTER_OTLP_ENDPOINT":    "http://a",
		"EXPORTER_OTLP_TIMEOUT":     "1500",
		"BSP_SCHEDULE_DELAY":        "250",
		"BSP_MAX_QUEUE_SIZE":        "64",
		"BSP_MAX_EXPORT_BATCH_SIZE": "8",
	}.options()
	if err != nil || o.Timeout != 1500*time.Millisecond || o.Interval != 250*time.Millisecond || o.Queue != 64 ||
		o.Batch != 8 {
		t.Errorf("%+v, %v", o, err)
	}
}

// Invalid values are rejected with the variable's name, and without possible keys.
func TestFromEnvironment_RejectsInvalidValues(t *testing.T) {
	t.Parallel()
	for variable, value := range map[string]string{
		"EXPORTER_OTLP_ENDPOINT":        "collector:4318",
		"EXPORTER_OTLP_TRACES_ENDPOINT": "http://user:" + canary + "@collector",
		"EXPORTER_OTLP_PROTOCOL":        "grpc",
		"TRACES_EXPORTER":               "console",
		"EXPORTER_OTLP_HEADERS":         "authorization " + canary,
		"EXPORTER_OTLP_TRACES_HEADERS":  "a=%zz" + canary,
		"TRACES_SAMPLER":                "jaeger_remote",
		"EXPORTER_OTLP_TIMEOUT":         "10s",
		"EXPORTER_OTLP_TRACES_TIMEOUT":  "-1",
		"BSP_MAX_QUEUE_SIZE":            "many",
		"BSP_EXPORT_TIMEOUT":            "0",
		"EXPORTER_OTLP_CERTIFICATE":     "/no/such/file",
		"EXPORTER_OTLP_CLIENT_KEY":      "/no/such/file",
	} {
		e := environment{"EXPORTER_OTLP_ENDPOINT": "http://a"}
		e[variable] = value
		if _, err := e.options(); err == nil || !strings.Contains(err.Error(), "OTEL_"+variable) ||
			strings.Contains(err.Error(), canary) {
			t.Errorf("%s=%s: %v", variable, value, err)
		}
	}
	for _, ratio := range []string{"2", "-0.1", "NaN", "half"} {
		if _, err := (environment{
			"EXPORTER_OTLP_ENDPOINT": "http://a",
			"TRACES_SAMPLER":         "traceidratio",
			"TRACES_SAMPLER_ARG":     ratio,
		}).options(); err == nil {
			t.Errorf("a ratio of %s is accepted", ratio)
		}
	}
}

// A collector with a private CA is trusted by OTEL_EXPORTER_OTLP_CERTIFICATE only.
func TestCollectorCertificate(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	file := filepath.Join(t.TempDir(), "collector.pem")
	if err := os.WriteFile(
		file,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	for outcome, e := range map[string]environment{
		"sent":   {"EXPORTER_OTLP_ENDPOINT": s.URL, "EXPORTER_OTLP_CERTIFICATE": file},
		"failed": {"EXPORTER_OTLP_ENDPOINT": s.URL},
	} {
		o, err := e.options()
		if err != nil {
			t.Fatal(err)
		}
		o.Interval = time.Millisecond
		tr, _ := to(t, o)
		sendSpans(t, tr, 1)
		apptest.Until(t, "the span is "+outcome, func() bool { return tr.Counts()[outcome] == 1 })
	}
}

func TestLogger_AddsTraceID(t *testing.T) {
	t.Parallel()
	tr, _ := to(t, traces.Options{Endpoint: "http://127.0.0.1:1"})
	var out bytes.Buffer
	log := tr.Logger(slog.New(slog.NewTextHandler(&out, nil))).With("room", "x")
	span := tr.Request(t.Context(), http.Header{"Traceparent": {parent(true)}}, time.Now(), http.MethodGet, "/x")
	defer span.End()
	log.InfoContext(span.NewContext(t.Context()), "within")
	log.InfoContext(t.Context(), "without")
	within, without, _ := strings.Cut(out.String(), "\n")
	if !strings.Contains(within, "trace_id="+theirTrace+" span_id=") || strings.Contains(without, "trace_id") {
		t.Errorf("the log says:\n%s", out.String())
	}
	var none *traces.Traces
	if none.Logger(log) != log {
		t.Error("without traces Logger returns another logger")
	}
}
