package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// scrape is what a server tells at one time, by series.
type scrape map[string]sample

type sample struct {
	of    labels.Labels
	value float64
}

// instance is the program itself.
type instance struct {
	*testing.T
	dir string
	log string
	URL string `json:"url"`
	Key string `json:"api_key"`
}

// serve builds the server and starts it, with a private database.
func serve(t *testing.T) *instance {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs PostgreSQL, and -short is set")
	}
	dir, err := os.MkdirTemp("", "deviceaccess-alerts-") // the private database may run as another user
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &instance{T: t, dir: dir, log: filepath.Join(dir, "log")}
	program, ready := filepath.Join(dir, "deviceaccess-server"), filepath.Join(dir, "ready.json")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./server/cmd/deviceaccess-server")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the server has its own
	server := exec.CommandContext(
		context.Background(),
		program,
		"serve",
		"--sandbox",
		"--listen",
		"127.0.0.1:0",
		"--metrics-listen",
		"127.0.0.1:0",
		"--auth-failures-per-minute",
		"1",
		"--ready-file",
		ready,
		"--data-dir",
		filepath.Join(dir, "data"),
	)
	server.Env = slices.DeleteFunc(os.Environ(), func(setting string) bool { // the shell's are for another server
		return strings.HasPrefix(setting, "DEVICEACCESS_")
	})
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	s.until("the server is ready", func() bool {
		select {
		case err := <-ended:
			ended <- err
			if strings.Contains(s.told(), "no PostgreSQL 14 or newer found") && os.Getenv("REQUIRE_ALL") != "1" {
				t.Skip("skipped, this is missing: PostgreSQL 14 or newer")
			}
			t.Fatalf("the server has ended: %v\n%s", err, s.told())
		default:
		}
		b, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(b, s) == nil
	})
	return s
}

// told is what the server has logged.
func (s *instance) told() string {
	b, _ := os.ReadFile(s.log)
	return string(b)
}

func (s *instance) until(what string, ok func() bool) {
	s.Helper()
	scale, err := strconv.ParseFloat(os.Getenv("DEVICEACCESS_TEST_TIMEOUT_SCALE"), 64)
	if err != nil || scale <= 0 {
		scale = 1
	}
	for deadline := time.Now().Add(time.Duration(scale * float64(3*time.Minute))); !ok(); {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain: %s", what)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.Context().Done():
			s.Fatal(s.Context().Err())
		}
	}
}

func (s *instance) ask(method, url, key, body string) (status int, answer []byte) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		s.Fatal(err)
	}
	return res.StatusCode, answer
}

// hangUp asks, and does not wait for the answer for long.
func (s *instance) hangUp(path, body string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 300*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Key)
	req.Header.Set("Content-Type", "application/json")
	if res, err := http.DefaultClient.Do(req); err == nil { // it was faster
		res.Body.Close()
	}
}

// device is any that the server knows.
func (s *instance) device() (id string) {
	s.Helper()
	var found struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	s.until("a device is found", func() bool {
		_, answer := s.ask(http.MethodPost, s.URL+"/devices/list", s.Key, "{}")
		return json.Unmarshal(answer, &found) == nil && len(found.Devices) > 0
	})
	return found.Devices[0].ID
}

// scrape is read as Prometheus reads it.
func (s *instance) scrape() scrape {
	s.Helper()
	where := regexp.MustCompile(`msg="serving metrics" url=(\S+)`).FindStringSubmatch(s.told())
	if where == nil {
		s.Fatal("the log does not tell where metrics are")
	}
	_, text := s.ask(http.MethodGet, where[1], "", "")
	p, found := textparse.NewPromParser(bytes.TrimSpace(text), labels.NewSymbolTable(), false), scrape{}
	for {
		switch entry, err := p.Next(); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			s.Fatalf("what is told cannot be read: %v", err)
		case entry == textparse.EntrySeries:
			var of labels.Labels
			_, _, value := p.Series()
			p.Labels(&of)
			found[of.String()] = sample{of, value}
		}
	}
}

// takesNoWrites has the database of the server be as one is that is a standby now.
func (s *instance) takesNoWrites() {
	s.Helper()
	socket, err := os.ReadFile(filepath.Join(s.dir, "data", "postgres", "lock"))
	if err != nil {
		s.Fatal(err)
	}
	password, err := os.ReadFile(filepath.Join(s.dir, "data", "postgres", "password"))
	if err != nil {
		s.Fatal(err)
	}
	conn, err := pgx.Connect(s.Context(), fmt.Sprintf(
		"host=%s user=postgres password=%s dbname=postgres", bytes.TrimSpace(socket), bytes.TrimSpace(password)))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(s.Context()))
	for _, sql := range []string{
		"alter database postgres set default_transaction_read_only = on",
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
	} {
		if _, err := conn.Exec(s.Context(), sql); err != nil {
			s.Fatal(err)
		}
	}
}
