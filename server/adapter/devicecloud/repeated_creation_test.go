package devicecloud_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The response to a repeated creation may describe the code as it was created first, which differs from the request.
func TestPutCode_VerifiesResponse(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	end, past := start.Add(time.Hour), start.Add(-240*time.Hour)
	at := func(t time.Time) string { return t.Format(time.RFC3339) }
	frame := fmt.Sprintf(`"starts_at":%q,"ends_at":%q`, at(start), at(end))
	timed := adapter.CodeSpec{
		Key:      "k",
		PIN:      pin,
		StartsAt: &start,
		EndsAt:   &end,
	}
	began := timed
	began.StartsAt = new(time.Now().Add(-time.Minute))
	whole := adapter.CodeSpec{Key: "k", PIN: pin}
	for _, c := range []struct {
		name, caps string
		spec       adapter.CodeSpec
		answer     string
		want       adapter.State
		changed    bool
		class      adapter.Class
		there      bool // the result has a Ref in addition to the error
	}{
		{
			name:   "as asked",
			spec:   whole,
			answer: `"code":"` + pin + `"`,
			want:   adapter.Confirmed,
		},
		{name: "without its PIN", spec: whole, want: adapter.Confirmed},
		{
			name:   "another PIN",
			spec:   whole,
			answer: `"code":"1357"`,
			want:   adapter.Accepted,
		},
		{
			name:    "another PIN, to be changed",
			caps:    `"modify_codes":true`,
			spec:    whole,
			answer:  `"code":"1357"`,
			want:    adapter.Confirmed,
			changed: true,
		},
		{
			name:    "on its way, another PIN, to be changed",
			caps:    `"modify_codes":true`,
			spec:    whole,
			answer:  `"code":"1357","status":"pending"`,
			want:    adapter.Confirmed,
			changed: true,
		},
		{
			name:   "the vendor's PIN",
			caps:   `"provider_pin":true`,
			spec:   adapter.CodeSpec{Key: "k"},
			answer: `"code":"1357"`,
			want:   adapter.Confirmed,
		},
		{
			name:   "its time frame",
			caps:   `"native_schedule":true`,
			spec:   timed,
			answer: frame,
			want:   adapter.Confirmed,
		},
		{
			name:   "another end",
			caps:   `"native_schedule":true`,
			spec:   timed,
			answer: fmt.Sprintf(`"starts_at":%q,"ends_at":%q`, at(start), at(end.Add(time.Hour))),
			want:   adapter.Accepted,
		},
		{
			name:   "another start",
			caps:   `"native_schedule":true`,
			spec:   timed,
			answer: fmt.Sprintf(`"starts_at":%q,"ends_at":%q`, at(past), at(end)),
			want:   adapter.Accepted,
		},
		{
			name:   "another start, in the past as that asked for",
			caps:   `"native_schedule":true`,
			spec:   began,
			answer: fmt.Sprintf(`"starts_at":%q,"ends_at":%q`, at(past), at(end)),
			want:   adapter.Confirmed,
		},
		{
			name:   "a time frame that was not asked for",
			caps:   `"native_schedule":true`,
			spec:   whole,
			answer: frame,
			want:   adapter.Accepted,
		},
		{
			name: "no time frame",
			caps: `"native_schedule":true,"modify_codes":true`,
			spec: timed,
			want: adapter.Accepted,
		},
		{
			name: "no time frame, without a list",
			caps: `"native_schedule":true,"list_codes":false`,
			spec: timed,
			want: adapter.Confirmed,
		},
		{
			name:   "another end, without a list",
			caps:   `"native_schedule":true,"list_codes":false`,
			spec:   timed,
			answer: fmt.Sprintf(`"starts_at":%q,"ends_at":%q`, at(start), at(end.Add(time.Minute))),
			want:   adapter.Confirmed,
		},
		{
			name:   "another PIN, without a list",
			caps:   `"list_codes":false`,
			spec:   whole,
			answer: `"code":"1357"`,
			class:  adapter.Unconfirmed,
			there:  true,
		},
		{
			name:   "a hidden PIN",
			spec:   whole,
			answer: `"code":"****"`,
			want:   adapter.Confirmed,
		},
		{
			name:   "being deleted",
			spec:   whole,
			answer: `"status":"deleting"`,
			class:  adapter.Transient,
		},
		{
			name:   "with an error",
			spec:   whole,
			answer: `"status":"active","error_code":"DEVICE_ERROR"`,
			want:   adapter.Accepted,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = io.WriteString(w, `{"lock_id":"l1","capabilities":{`+c.caps+`}}`)
					return
				}
				body, _ := io.ReadAll(r.Body)
				calls = append(calls, r.Method+" "+r.URL.Path)
				if r.Method == http.MethodPatch {
					if strings.Contains(string(body), "custom_id") || !strings.Contains(string(body), pin) {
						t.Error("the change does not contain the PIN")
					}
					_, _ = io.WriteString(w, `{"access_code_id":"c1","code":"`+pin+`"}`)
					return
				}
				_, _ = io.WriteString(w, strings.ReplaceAll(`{"access_code_id":"c1",`+c.answer+`}`, ",}", "}"))
			})
			got, err := a.PutCode(t.Context(), "l1", c.spec)
			if c.class != "" {
				classIs(t, "PutCode", err, c.class)
				if c.there != (got.Ref == "c1") {
					t.Errorf("the ref is %q", got.Ref)
				}
				return
			}
			want := []string{"POST /locks/l1/access_codes"}
			if c.changed {
				want = append(want, "PATCH /access_codes/c1")
			}
			if err != nil || got.State != c.want || got.Ref != "c1" || !slices.Equal(calls, want) {
				t.Errorf("%s of %s (%v), after %q", got.State, got.Ref, err, calls)
			}
		})
	}
}

// If a proxy loses the response or the vendor fails, the outcome of a command is unknown. A door must not be opened
// twice.
func TestUnconfirmedCommandIsNotRepeated(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]adapter.Class{
		500: adapter.Unconfirmed, 502: adapter.Unconfirmed,
		520: adapter.Unconfirmed, 524: adapter.Unconfirmed, 503: adapter.Transient, 530: adapter.Transient,
	} {
		for _, body := range []string{"<html>no</html>", `{}`} {
			a, _ := vendor(t, guide(says(status, body)))
			_, err := a.Unlock(t.Context(), "l1")
			classIs(t, fmt.Sprint("Unlock ", status, body), err, want)
			if status/10 == 52 {
				_, err = a.PutCode(t.Context(), "l1", adapter.CodeSpec{PIN: pin})
				classIs(t, fmt.Sprint("PutCode ", status, body), err, adapter.Unconfirmed)
				_, err = a.Codes(t.Context(), "l1", true)
				classIs(t, fmt.Sprint("Codes ", status, body), err, adapter.Transient)
			}
		}
	}
}

// An identifier of dots would turn a request about one resource into a request about another.
func TestIdentifiersOfDotsAreNotSent(t *testing.T) {
	t.Parallel()
	for _, dots := range []string{".", ".."} {
		var asked []string
		a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.RequestURI)
			switch {
			case r.Method == http.MethodPost:
				_, _ = io.WriteString(w, `{"access_code_id":"`+dots+`"}`)
			case r.URL.Path == "/locks":
				_, _ = io.WriteString(w, `{"locks":[{"lock_id":"`+dots+`"},{"lock_id":"l1"}]}`)
			case strings.HasSuffix(r.URL.Path, "/access_codes"):
				_, _ = io.WriteString(w, `{"access_codes":[{"access_code_id":"`+dots+`"},{"access_code_id":"c1"}]}`)
			default:
				_, _ = io.WriteString(w, `{"lock_id":"l1"}`)
			}
		})
		if devices, err := a.Devices(t.Context()); err != nil || len(devices) != 1 {
			t.Errorf("%d locks (%v)", len(devices), err)
		}
		if codes, err := a.Codes(t.Context(), "l1", true); err != nil || len(codes.Codes) != 1 {
			t.Errorf("%d codes (%v)", len(codes.Codes), err)
		}
		_, err := a.PutCode(t.Context(), "l1", adapter.CodeSpec{PIN: pin})
		classIs(t, "PutCode", err, adapter.Unconfirmed)
		before := len(asked)
		_, err = a.Device(t.Context(), adapter.DeviceRef(dots))
		classIs(t, "Device", err, adapter.NotFound)
		if state, err := a.DeleteCode(t.Context(), "l1", adapter.CodeRef(dots)); err != nil ||
			state != adapter.Confirmed {
			t.Errorf("DeleteCode: %s, %v", state, err)
		}
		if len(asked) != before {
			t.Errorf("sent %q", asked[before:])
		}
	}
}

// If the change that a repeated creation requires fails, the code exists nevertheless.
func TestPutCode_FailedChangeReturnsRef(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]adapter.CodeRef{
		"DEVICE_OFFLINE": "c1", "INVALID_PIN": "c1",
		"ACCESS_CODE_NOT_FOUND": "",
	} {
		a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.Method {
			case http.MethodGet:
				_, _ = io.WriteString(w, `{"lock_id":"l1","capabilities":{"modify_codes":true}}`)
			case http.MethodPost:
				_, _ = io.WriteString(w, `{"access_code_id":"c1","code":"1357"}`)
			default:
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, `{"error_code":"`+answer+`","message":"no"}`)
			}
		})
		got, err := a.PutCode(t.Context(), "l1", adapter.CodeSpec{Key: "k", PIN: pin})
		if err == nil || got.Ref != want {
			t.Errorf("%s: the ref is %q, %v", answer, got.Ref, err)
		}
	}
}
