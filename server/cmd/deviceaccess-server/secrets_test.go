package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces/tracestest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// overheard is a running server with real locks at the most verbose log level. It keeps all output of the server and of
// commands. It learns the secrets in requests; the test adds the secrets of commands.
type overheard struct {
	*program
	secretscan.Ledger                   // must not appear in any output
	addressed         secretscan.Ledger // may only appear in the database, in the URL of a webhook
	ready
	collector *tracestest.Receiver
	said      map[string][]byte // by source
	finish    func()            // stops the server
	key       string
}

func overhear(t *testing.T) *overheard {
	t.Helper()
	o := &overheard{program: newPrivate(t), collector: tracestest.New(t), said: map[string][]byte{}}
	o.env = []string{
		"DEVICEACCESS_LOG_LEVEL=debug",
		"DEVICEACCESS_LOG_FORMAT=json",
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + strings.TrimSuffix(
			o.collector.URL,
			"/v1/traces",
		),
		"OTEL_BSP_SCHEDULE_DELAY=500",
		"OTEL_BSP_MAX_QUEUE_SIZE=65536",
	}
	log, err := os.Create(filepath.Join(o.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	o.log = log
	r, cmd := o.serve("--sandbox=false", "--metrics-listen", "127.0.0.1:0", "--allow-webhook-prefix", "127.0.0.0/8")
	server, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	watched := httptest.NewServer(o.Watch(httputil.NewSingleHostReverseProxy(server)))
	t.Cleanup(watched.Close)
	o.ready, o.finish = ready{URL: watched.URL}, func() { o.stop(cmd) }
	master, err := os.ReadFile(filepath.Join(o.dir, "data", "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(master)))
	if err != nil {
		t.Fatal(err)
	}
	o.Learn("master key", string(raw))
	return o
}

// says runs a command, keeps its output, and returns its standard output.
func (o *overheard) says(succeeds bool, args ...string) string {
	o.Helper()
	cmd := o.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); (err == nil) != succeeds {
		o.Errorf("%v ends with %v: %s", args, err, errs.Bytes())
	}
	o.keep(args, append(out.Bytes(), errs.Bytes()...))
	return strings.TrimSpace(out.String())
}

// gives runs a command that prints a secret. The secret must be the only text on standard output, and must not be on
// standard error.
func (o *overheard) gives(kind string, args ...string) (secret string) {
	o.Helper()
	cmd := o.command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	secret = strings.TrimSuffix(string(out), "\n")
	if err != nil || strings.ContainsAny(secret, " \n") || !o.Learn(kind, secret) {
		o.Fatalf("%v ends with %v, and does not print a %s and nothing else: %s", args, err, kind, errs.Bytes())
	}
	o.keep(args, errs.Bytes())
	return secret
}

// keep records the output of a command under its name.
func (o *overheard) keep(args []string, written []byte) {
	words := args[:1]
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		words = args[:2]
	}
	place := "what " + strings.Join(words, " ") + " says"
	o.said[place] = append(o.said[place], written...)
}

// password creates a file with a password that must not appear in any output.
func (o *overheard) password(user, password string) (file string) {
	o.Helper()
	o.Learn("password", password)
	o.Learn("login", base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	return o.file("password-"+password[:8], password+"\n")
}

// ends stops the server and searches all output for the secrets.
func (o *overheard) ends() {
	o.Helper()
	file := filepath.Join(o.dir, "backup.tar.gz")
	o.says(true, "backup", "--without-key", file)
	o.says(true, "backup", filepath.Join(o.dir, "with-its-key.tar.gz"))
	places := maps.Clone(o.said)
	written := func() []byte {
		log, err := os.ReadFile(o.log.Name())
		if err != nil {
			o.Fatal(err)
		}
		return log
	}
	metrics := regexp.MustCompile(`"msg":"serving metrics","url":"([^"]+)"`).FindSubmatch(written())
	if metrics == nil {
		o.Fatal("the log does not say where the metrics are")
	}
	places["the metrics"] = secretscan.Get(o, string(metrics[1]))
	database, err := pglocal.Open(o.Context(), pglocal.Options{Dir: filepath.Join(o.dir, "data", "postgres")})
	if err != nil {
		o.Fatal(err)
	}
	dump := secretscan.Dump(o, database.DSN("postgres"))
	o.finish()
	places["the log"], places["the traces"], places["the traces in words"] = written(), o.collector.Raw(), o.collector.Readable()
	if refusals := o.ErrorResponses(); len(refusals) > 0 {
		places["refusals"] = refusals
	}
	o.addressed.Search(o, places)
	places["a dump of the database"], places["a backup without its key"] = dump, o.unpacked(file)
	o.Search(o, places)
}

// unpacked returns the content of a backup, including deleted rows and the WAL of PostgreSQL. It leaves out simulated
// locks, which know their PINs, and blocks of zeros.
func (p *program) unpacked(file string) []byte {
	p.Helper()
	f, err := os.Open(file)
	if err != nil {
		p.Fatal(err)
	}
	defer f.Close()
	r, err := backup.NewReader(f)
	if err != nil {
		p.Fatal(err)
	}
	var all bytes.Buffer
	for {
		h, content, err := r.Next()
		if err == io.EOF { //nolint:errorlint // it is the end
			return all.Bytes()
		}
		if err == nil && content != nil && !strings.HasPrefix(h.Name, "sandbox/") {
			err = withoutZeros(&all, content)
		}
		if err != nil {
			p.Fatal(err)
		}
	}
}

// withoutZeros copies a stream except blocks of zeros.
func withoutZeros(to *bytes.Buffer, from io.Reader) error {
	block, zeros := make([]byte, 256), make([]byte, 256)
	for reader := bufio.NewReaderSize(from, 1<<16); ; {
		n, err := io.ReadFull(reader, block)
		if !bytes.Equal(block[:n], zeros[:n]) {
			to.Write(block[:n])
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// connectUpstream connects a workspace of an upstream server whose answers quote the API key, with a wrong key and with
// the right one.
func (o *overheard) connectUpstream() {
	o.Helper()
	const right, wrong = "seam_right_key_of_a_workspace", "seam_wrong_key_of_a_workspace"
	o.Learn("api_key", right)
	o.Learn("api_key", wrong)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case key != right:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"type":"unauthorized","message":"No workspace has %s"}}`, key)
		case r.URL.Path == "/workspaces/get":
			fmt.Fprintf(w, `{"workspace":{"workspace_id":"0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11","name":"Of %s"}}`, key)
		case r.URL.Path == "/connected_accounts/list":
			io.WriteString(w, `{"connected_accounts":[]}`)
		case r.URL.Path == "/devices/list":
			io.WriteString(w, `{"devices":[]}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"type":"invalid_input","message":"%s may not do this"}}`, key)
		}
	}))
	o.Cleanup(upstream.Close)
	connect := func(succeeds bool, key string) {
		o.Helper()
		file := o.file("key", key)
		o.says(succeeds, "accounts", "connect", "seam", "--url", upstream.URL, "--api-key-file", file)
	}
	connect(false, wrong)
	connect(true, right)
}

// No command and no output of the server reveals the credentials of gateways and vendors, correct or not.
func TestSecrets_GatewayCredentials(t *testing.T) {
	t.Parallel()
	o := overhear(t)
	o.says(true, "workspaces", "create", "Home")
	const user, next = "user-of-the-gateway", "another-of-its-users"
	o.Learn("user", user)
	o.Learn("user", next)
	wrong, right, last := o.password(
		user,
		"nearly-right-9-word",
	), o.password(
		user,
		"entirely-right-4-word",
	), o.password(
		next,
		"afterwards-7-right-word",
	)
	const token, typo = "token-in-the-query-of-a-gateway", "token-with-an-error-in-typing"
	o.Learn("token", token)
	o.Learn("token", typo)
	o.Learn("password", "typed-into-the-URL")
	zwave, broker, vault := &door{
		user:     user,
		password: "entirely-right-4-word",
	}, &door{
		user:     user,
		password: "entirely-right-4-word",
	}, &door{
		user:     user,
		password: "entirely-right-4-word",
	}
	cert, key := clientCertificate(t)
	other, otherKey := clientCertificate(t)
	for _, k := range []string{key, otherKey} {
		for line := range strings.Lines(k) {
			if !strings.HasPrefix(line, "-") {
				o.Learn("key of a certificate", strings.TrimSpace(line))
			}
		}
	}
	secure, ca := onlyFor(t, cert)
	atZWave, atBroker, atVault := fakeZWave(
		t,
		zwave,
		token,
	), "mqtt://"+fakeBroker(
		t,
		broker,
		nil,
	), "mqtts://"+fakeBroker(
		t,
		vault,
		secure,
	)

	connect := func(succeeds bool, kind string, args ...string) string {
		t.Helper()
		return o.says(succeeds, append([]string{"accounts", "connect", kind}, args...)...)
	}
	as := func(password string) []string { return []string{"--username", user, "--password-file", password} }
	for _, address := range []string{
		"ws://127.0.0.1:1/?token=" + token,
		atZWave + "/?token=" + typo,
		"ws://me:typed-into-the-URL@127.0.0.1:1",
		"ws://me:typed-into-the-URL@127.0.0.1:x",
		"ws://127.0.0.1:x/?token=" + token,
		"typed-into-the-URL",
	} {
		connect(false, "zwavejs", append([]string{"--url", address}, as(right)...)...)
	}
	connect(false, "zwavejs", append([]string{"--url", atZWave + "/?token=" + token}, as(wrong)...)...)
	connect(true, "zwavejs", append([]string{"--url", atZWave + "/?token=" + token}, as(right)...)...)
	connect(false, "zwavejs", append([]string{"--url", atZWave + "/?token=" + token}, as(right)...)...) // again
	for _, address := range []string{
		"mqtt://127.0.0.1:1",
		"mqtt://me:typed-into-the-URL@127.0.0.1:1",
		"mqtt://me:typed-into-the-URL@127.0.0.1:x",
		"typed-into-the-URL",
	} {
		connect(false, "zigbee2mqtt", append([]string{"--broker", address}, as(right)...)...)
	}
	connect(false, "zigbee2mqtt", append([]string{"--broker", atBroker}, as(wrong)...)...)
	account := connect(true, "zigbee2mqtt", append([]string{"--broker", atBroker}, as(right)...)...)
	with := func(cert, key string) []string {
		return append(
			[]string{
				"--broker",
				atVault,
				"--ca",
				o.file("ca", ca),
				"--cert",
				o.file("cert", cert),
				"--key",
				o.file("key", key),
			},
			as(right)...)
	}
	connect(false, "zigbee2mqtt", with(other, otherKey)...)
	connect(false, "zigbee2mqtt", with(cert, otherKey)...)
	connect(false, "zigbee2mqtt", with(key, cert)...)
	connect(true, "zigbee2mqtt", with(cert, key)...)
	vendor, right2 := cloud(t)
	o.Learn("token", right2)
	connect(false, "devicecloud", "--url", vendor, "--token-file", o.file("typo", typo))
	connect(
		false,
		"devicecloud",
		"--url",
		strings.Replace(vendor, "://", "://me:typed-into-the-URL@", 1),
		"--token-file",
		o.file("token", right2),
	)
	connect(true, "devicecloud", "--url", vendor, "--token-file", o.file("token", right2))
	o.connectUpstream()

	o.until("the server is in everywhere", func() bool { return zwave.open() && broker.open() && vault.open() })
	zwave.change(next, "afterwards-7-right-word")
	broker.change(next, "afterwards-7-right-word")
	o.untilYes("(select count(*) from connected_accounts where error_code is not null) = 2")
	for _, want := range []string{"another user or password", "the user name or the password"} {
		if list := o.says(true, "accounts", "list"); !strings.Contains(list, want) {
			t.Errorf("the list does not explain the rejected login: %q is missing in\n%s", want, list)
		}
	}
	change := func(password string) []string {
		return []string{"accounts", "update", "--username", next, "--password-file", password, account}
	}
	o.says(false, change(wrong)...)
	o.says(true, change(last)...)
	o.until("it is let in again", broker.open)
	o.says(true, "accounts", "disconnect", "--yes", account)
	o.says(true, "audit")
	o.ends()
}

var pinSent = regexp.MustCompile(`"code":"\d+"`)

// Only commands that create a secret print one, even if a webhook's endpoint returns what it receives.
func TestSecrets_CommandOutput(t *testing.T) {
	t.Parallel()
	o := overhear(t)
	workspace := o.says(true, "workspaces", "create", "Home")
	o.key = o.gives("credential", "keys", "create", "--name", "first", "--workspace", workspace)
	o.gives("credential", "keys", "create", "--kind", "pat", "--name", "second", "--workspace", workspace)
	vendor, token := cloud(t)
	o.Learn("token", token)
	o.says(true, "accounts", "connect", "devicecloud", "--url", vendor, "--token-file", o.file("token", token))
	var answer atomic.Int32
	answer.Store(http.StatusGone)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(int(answer.Load()))
		fmt.Fprintf(w, "got %s", pinSent.Find(body))
	}))
	t.Cleanup(endpoint.Close)
	var made struct {
		Webhook struct {
			ID string `json:"webhook_id"`
		} `json:"webhook"`
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	o.addressed.Learn("token of a webhook's URL", "hush-hush-hush")
	if status := o.post(
		o.ready,
		o.key,
		"/webhooks/create",
		`{"url":"`+endpoint.URL+`/in?token=hush-hush-hush","event_types":["access_code.set_on_device"]}`,
		&made,
	); status != http.StatusOK {
		t.Fatalf("create a webhook: %d", status)
	}
	o.until("the lock appears", func() bool {
		o.post(o.ready, o.key, "/devices/list", "{}", &made)
		return len(made.Devices) == 1
	})
	hook := made.Webhook.ID
	code := fmt.Sprintf(`{"device_id":%q,"code":"739184"}`, made.Devices[0].ID)
	for _, want := range []int{http.StatusOK, http.StatusConflict} {
		if status := o.post(o.ready, o.key, "/access_codes/create", code, nil); status != want {
			t.Errorf("create a code: %d, expected %d", status, want)
		}
	}
	o.untilYes("exists (select from deliveries where state = 'held')")
	if list := o.says(true, "webhooks", "deliveries", hook); !strings.Contains(list, "held") {
		t.Errorf("no delivery is held:\n%s", list)
	}
	try := []string{"webhooks", "test", "--allow-webhook-prefix", "127.0.0.0/8", hook}
	o.says(true, "webhooks", "list")
	o.says(false, try...)
	o.says(false, "webhooks", "test", hook)
	o.says(false, "webhooks", "replay", hook) // no answer on standard input
	o.says(true, "webhooks", "replay", "--dry-run")
	answer.Store(http.StatusOK)
	o.gives("secret", "webhooks", "rotate-secret", hook)
	o.says(false, "webhooks", "rotate-secret", hook)
	o.says(true, try...)
	o.says(true, "webhooks", "enable", hook)
	o.says(true, "webhooks", "replay", "--yes")
	o.untilYes("exists (select from deliveries where state = 'delivered')")
	if list := o.says(true, "webhooks", "deliveries", "--state", "delivered"); !strings.Contains(list, "delivered") {
		t.Errorf("no delivery is listed as delivered:\n%s", list)
	}
	event := strings.Fields(strings.Split(o.says(true, "webhooks", "deliveries", hook), "\n")[1])[1]
	if attempts := o.says(true, "webhooks", "deliveries", "--event", event); strings.Count(attempts, "***") != 2 {
		t.Errorf("the response of the endpoint is not shown:\n%s", attempts)
	}
	o.gives("secret", "webhooks", "rotate-secret", "--overlap", "0", hook)
	keys := o.says(true, "keys", "list")
	o.says(true, "keys", "revoke", regexp.MustCompile(`(?m)^(\S+) .* second `).FindStringSubmatch(keys)[1])
	o.says(true, "keys", "rotate-encryption")
	o.says(true, "accounts", "list")
	o.says(true, "workspaces", "list")
	o.says(true, "migrate")
	o.says(true, "audit")
	o.says(true, "audit", "--output", "json")
	for kind, least := range map[string]int{"code": 1, "secret": 3, "credential": 2, "token": 1, "master key": 1} {
		if n := o.Count(kind); n < least {
			t.Errorf("%d of kind %s were learned, expected %d", n, kind, least)
		}
	}
	o.ends()
}
