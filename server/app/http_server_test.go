package app_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// The simulated cloud and the metrics have the same connection limits as the API.
func TestListeners_HaveLimits(t *testing.T) {
	t.Parallel()
	server := apptest.Start(t, func(c *app.Config) { c.MetricsListen = "127.0.0.1:0" })
	cloud, err := app.StartCloud(
		t.Context(),
		app.CloudConfig{
			Database:    app.Database{DatabaseURL: storetest.New(t), DataDir: t.TempDir(), MaxConns: 4},
			Listen:      "127.0.0.1:0",
			Connections: 64,
			Log:         slog.New(slog.DiscardHandler),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Stop(t.Context()); err != nil {
			t.Log(err)
		}
	})
	for what, url := range map[string]string{
		"the simulated cloud": cloud.URL,
		"the metrics":         strings.TrimSuffix(server.App.MetricsURL, "/metrics"),
	} {
		t.Run(what, func(t *testing.T) {
			address := strings.TrimPrefix(url, "http://")
			long, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer long.Close()
			_ = long.SetDeadline(time.Now().Add(testenv.Timeout(testenv.WaitTimeout)))
			fmt.Fprintf(long, "GET / HTTP/1.1\r\nHost: x\r\nX-A: %s\r\n\r\n", strings.Repeat("a", 80<<10))
			res, err := http.ReadResponse(bufio.NewReader(long), nil)
			if err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("a long header: %v %v", res, err)
			}
			var first net.Conn
			for range 64 { // half of the connections are for one address
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if first == nil {
					first = c
				}
			}
			_ = first.SetDeadline(time.Now().Add(testenv.Timeout(testenv.WaitTimeout)))
			if _, err := first.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("the longest idle connection is still open: %v", err)
			}
		})
	}
	res, err := http.Get(server.App.MetricsURL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || len(b) == 0 {
		t.Errorf("afterwards the metrics are %s, %d bytes, %v", res.Status, len(b), err)
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
