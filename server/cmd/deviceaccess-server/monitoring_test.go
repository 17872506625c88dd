package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A backup shows in the metrics of the running server. A start that is probed, and a clean stop, log no warnings.
func TestMonitoring_BackupAndCleanStop(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	r, cmd := p.serve("--sandbox-speed", "100", "--metrics-listen", "127.0.0.1:0", "--log-level", "info")
	p.furnish(r, "258013")
	begun := time.Now().Unix()
	p.ok("backup", filepath.Join(p.dir, "backup.tar.gz"))
	log := func() string {
		b, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	url := regexp.MustCompile(`msg="serving metrics" url=(\S+)`).FindStringSubmatch(log())
	if url == nil {
		t.Fatal("the server does not log where its metrics are")
	}
	res, err := http.Get(url[1])
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^deviceaccess_last_backup_timestamp_seconds (\S+)$`).FindSubmatch(text)
	if shown == nil {
		t.Fatalf("the metrics show no backup:\n%s", text)
	}
	if at, err := strconv.ParseFloat(string(shown[1]), 64); err != nil || int64(at) < begun {
		t.Errorf("the last backup was at %s, want after %d", shown[1], begun)
	}
	p.stop(cmd)
	said := log()
	_, stopping, _ := strings.Cut(said, "msg=stopping")
	if !strings.Contains(stopping, "msg=stopped") {
		t.Error("the server logs no end")
	}
	if strings.Contains(said, "health has changed") {
		t.Error("a start and a stop without problems change the health in the log")
	}
	for line := range strings.Lines(stopping) {
		if regexp.MustCompile(`level=(WARN|ERROR)`).MatchString(line) {
			t.Errorf("a clean stop logs: %s", withoutKeys([]byte(line)))
		}
	}
}
