package seam_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
)

func postJSON(t *testing.T, url, key string, body any, want int, out any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		t.Fatalf("%s answers %d (%v)", url, res.StatusCode, err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatal(err)
		}
	}
}

// answering returns an adapter whose server gives answers by path.
func answering(t *testing.T, answers map[string]string) *seam.Adapter {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		checkRequest(t, r.URL.Path, body)
		w.Header().Set("Content-Type", "application/json")
		text, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	a := seam.New(seam.Config{BaseURL: server.URL, APIKey: "seam_test"})
	t.Cleanup(func() { _ = a.Close() })
	return a
}

const (
	deviceID = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
	lockJSON = `{"device_id":"` + deviceID + `","device_type":"yale_lock","display_name":"Door","errors":[{"error_code":"x","message":"y"}],` +
		`"device_provider":{"device_provider_name":"yale"},"can_remotely_unlock":true,` +
		`"can_program_online_access_codes":true,"properties":{"online":true,"locked":true,"battery_level":0.5,` +
		`"supported_code_lengths":[4,6],"max_active_codes_supported":100,"auto_lock_enabled":true,` +
		`"auto_lock_delay_seconds":30,"code_constraints":[{"constraint_type":"no_zeros"}],"model":{"display_name":"M"}}}`
	codeJSON = `{"access_code_id":"0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3","device_id":"` + deviceID + `","name":"Guest","code":"4829","status":"setting",` +
		`"starts_at":"2026-01-01T00:00:00Z","ends_at":"2026-01-02T00:00:00Z","is_managed":true,` +
		`"common_code_key":"deviceaccess-k","errors":[{"error_code":"duplicate_code_on_device","message":"m"}],` +
		`"pending_mutations":[{"mutation_code":"creating"}]}`
	pageJSON = `"pagination":{"has_next_page":false,"next_page_cursor":null}`
)

// No answer makes the adapter panic, or return an error without a class.
func TestAbsurdAnswers(t *testing.T) {
	t.Parallel()
	typed := func(t *testing.T, what, name string, err error) {
		t.Helper()
		if err != nil && adapter.AsError(err) == nil {
			t.Errorf("%s, when %s: %v", what, name, err)
		}
	}
	answers := map[string]string{"/access_codes/unmanaged/list": `{"access_codes":[]}`}
	a := answering(t, answers)
	for name, text := range adaptertest.Twists(t, `{"devices":[`+lockJSON+`],`+pageJSON+`}`) {
		answers["/devices/list"] = text
		devices, err := a.Devices(t.Context())
		typed(t, "Devices", name, err)
		for _, d := range devices {
			if len(d.Capabilities.CodeLengths) == 0 ||
				d.BatteryLevel != nil && (*d.BatteryLevel < 0 || *d.BatteryLevel > 1) {
				t.Errorf("when %s, the device is %+v", name, d)
			}
		}
	}
	answers["/devices/get"] = `{"device":` + lockJSON + `}`
	for name, text := range adaptertest.Twists(t, `{"access_codes":[`+codeJSON+`],`+pageJSON+`}`) {
		answers["/access_codes/list"] = text
		_, err := a.Codes(t.Context(), deviceID, true)
		typed(t, "Codes", name, err)
	}
	answers["/access_codes/list"] = `{"access_codes":[]}`
	for name, text := range adaptertest.Twists(t, `{"access_code":`+codeJSON+`}`) {
		answers["/access_codes/create"] = text
		made, err := a.PutCode(t.Context(), deviceID, adapter.CodeSpec{Name: "n", PIN: "4829"})
		typed(t, "PutCode", name, err)
		if err == nil && made.Ref == "" {
			t.Errorf("PutCode, when %s: no ref", name)
		}
	}
}

func TestWriteBudget_TenCreationsAMinute(t *testing.T) {
	t.Parallel()
	a := answering(t, map[string]string{
		"/devices/get":         `{"device":` + lockJSON + `}`,
		"/access_codes/create": `{"access_code":` + codeJSON + `}`,
		"/access_codes/list":   `{"access_codes":[]}`,
	})
	put := func() error {
		_, err := a.PutCode(t.Context(), deviceID, adapter.CodeSpec{Name: "n", PIN: "4829"})
		return err
	}
	for range 10 {
		if err := put(); err != nil {
			t.Fatal(err)
		}
	}
	e := adapter.AsError(put())
	if e == nil || e.Class != adapter.Transient || e.RetryAfter <= 0 || e.RetryAfter > time.Minute {
		t.Errorf("the eleventh creation: %v", e)
	}
}

// A message of a server shows neither the API key nor PINs.
func TestErrors_HideSecrets(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		checkRequest(t, r.URL.Path, body)
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":{"type":"invalid_input","message":"seam_secret may not set 482913"}}`)
	}))
	t.Cleanup(server.Close)
	a := seam.New(seam.Config{BaseURL: server.URL, APIKey: "seam_secret"})
	t.Cleanup(func() { _ = a.Close() })
	_, err := a.Devices(t.Context())
	if err == nil || strings.Contains(err.Error(), "seam_secret") || strings.Contains(err.Error(), "482913") {
		t.Errorf("the error is %v", err)
	}
}

func TestConnection_Apply(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url, key string
		want     string // base URL; empty: refused
	}{
		"hosted":        {seam.DefaultURL, "seam_k", seam.DefaultURL},
		"case and port": {"HTTPS://Example.com.:443/", "seam_k", "https://example.com"},
		"own machine":   {"http://127.0.0.1:8080", "seam_k", "http://127.0.0.1:8080"},
		"in clear":      {"http://example.com", "seam_k", ""},
		"with user":     {"https://u:p@example.com", "seam_k", ""},
		"no URL":        {"example.com", "seam_k", ""},
		"no key":        {seam.DefaultURL, " ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &seam.Connection{}
			err := c.Apply(adapter.Settings{"url": test.url, "api-key": test.key})
			if (err == nil) != (test.want != "") || err == nil && c.BaseURL != test.want {
				t.Errorf("%q, %v", c.BaseURL, err)
			}
			if err != nil && strings.Contains(err.Error(), "u:p") {
				t.Error("the error shows the password")
			}
		})
	}
}
