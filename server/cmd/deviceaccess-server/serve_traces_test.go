package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces/tracestest"
)

// serve reads OpenTelemetry's variables and sends the remaining spans on shutdown.
func TestTraces_EnvironmentVariables(t *testing.T) {
	t.Parallel()
	collector := tracestest.New(t)
	p := newProgram(t)
	p.env = []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + strings.TrimSuffix(collector.URL, "/v1/traces"),
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20key-of-ours",
		"OTEL_SERVICE_NAME=front-door",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test",
		"OTEL_BSP_SCHEDULE_DELAY=1000000",
	}
	r, cmd := p.serve()
	if status := p.post(r, r.APIKey, "/devices/list", "{}", nil); status != http.StatusOK {
		t.Fatal(status)
	}
	p.stop(cmd)
	if len(collector.Spans(tracestest.Named("POST /devices/list"))) != 1 ||
		len(collector.Spans(tracestest.Named("ListDevices"))) == 0 {
		t.Errorf("the collector was sent %+v", collector.Spans())
	}
	if about := collector.Resource(); about["service.name"] != "front-door" ||
		about["deployment.environment.name"] != "test" ||
		about["service.version"] == "" {
		t.Errorf("the server is called %v", about)
	}
	if sent := collector.Header().Get("Authorization"); sent != "Bearer key-of-ours" {
		t.Errorf("the collector is sent the key %q", sent)
	}
	sent := collector.Requests()
	p.env = append(p.env, "OTEL_SDK_DISABLED=true")
	r, cmd = p.serve()
	if status := p.post(r, r.APIKey, "/devices/list", "{}", nil); status != http.StatusOK {
		t.Fatal(status)
	}
	p.stop(cmd)
	if n := collector.Requests() - sent; n != 0 {
		t.Errorf("without traces the collector is sent something %d times", n)
	}
}

// The flag takes precedence over all variables. The variable for traces takes precedence over the general one.
func TestTraces_FlagPrecedence(t *testing.T) {
	t.Parallel()
	p, right, wrong := newProgram(t), tracestest.New(t), tracestest.New(t)
	base := strings.TrimSuffix(right.URL, "/v1/traces")
	for _, c := range []struct {
		env, args []string
	}{
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + wrong.URL}, []string{"--traces-endpoint", base}},
		{
			[]string{
				"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + right.URL,
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + strings.TrimSuffix(wrong.URL, "/v1/traces"),
			},
			nil,
		},
	} {
		p.env = c.env
		before := right.Requests()
		r, cmd := p.serve(c.args...)
		if status := p.post(r, r.APIKey, "/devices/list", "{}", nil); status != http.StatusOK {
			t.Fatal(status)
		}
		p.stop(cmd)
		if right.Requests() == before || wrong.Requests() > 0 {
			t.Errorf(
				"%v %v: %d requests to the one that is meant, %d to the other",
				c.env,
				c.args,
				right.Requests()-before,
				wrong.Requests(),
			)
		}
	}
}

func TestTraces_UnsupportedProtocol(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	p.env = []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}
	_, err := p.run("serve", "--traces-endpoint", "http://127.0.0.1:4317")
	if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_PROTOCOL") ||
		!strings.Contains(err.Error(), "4318") {
		t.Errorf("the refusal is %v", err)
	}
	if help := p.ok("serve", "--help"); !strings.Contains(help, "OTEL_EXPORTER_OTLP_ENDPOINT") {
		t.Errorf("the help does not name the variable:\n%s", help)
	}
}
