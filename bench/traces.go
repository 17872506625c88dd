package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// startTraced starts another server on the bed's database, which sends its traces to a collector that discards them.
func (b *bed) startTraced(ctx context.Context) error {
	b.collector = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server counts lost spans
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	options, err := traces.FromEnvironment(func(name string) string {
		if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			return b.collector.URL
		}
		return ""
	})
	if err != nil {
		return err
	}
	c := b.config
	c.Traces, c.Wrap, c.MetricsListen = options, nil, "127.0.0.1:0"
	b.withTraces, err = app.Start(ctx, c)
	return err
}

// traced is ours for the server with traces.
func (b *bed) traced(path string, bodies ...string) target {
	return target{url: b.withTraces.URL + path, token: b.key, bodies: bodies}
}

// spans returns the outcomes of spans: dropped spans cost less than sent ones.
func (b *bed) spans(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.withTraces.MetricsURL, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var found []string
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "deviceaccess_trace_spans_total{") {
			found = append(found, lines.Text())
		}
	}
	return strings.Join(found, ", "), lines.Err()
}

func (b *bed) stopTraced(ctx context.Context) {
	if b.withTraces != nil {
		if err := b.withTraces.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the server with traces:", err)
		}
		b.withTraces = nil
	}
	if b.collector != nil {
		b.collector.Close()
		b.collector = nil
	}
}
