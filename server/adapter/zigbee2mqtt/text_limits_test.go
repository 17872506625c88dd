package zigbee2mqtt

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Responses of Zigbee2MQTT wait for their request.
func TestTooLargeResponseIsIgnored(t *testing.T) {
	t.Parallel()
	a := told(t)
	for size, want := range map[int]int{10: 1, 8000: 1, 100_000: 0} {
		answer := make(chan wireResponse, 1)
		a.requests["mine"] = answer
		a.receive("z/bridge/response/action",
			fmt.Appendf(nil, `{"transaction":"mine","status":"ok","data":{"data":%q}}`, strings.Repeat("a", size)),
			false)
		if len(answer) != want {
			t.Errorf("%d bytes: %d responses, want %d", size, len(answer), want)
		}
	}
}

func TestLogMessagesAreTruncated(t *testing.T) {
	t.Parallel()
	const failed = "z2m: Publish 'get' 'pin_code' to 'front door' failed: 'ZCL command 0xa/1 (timed out)'"
	long := strings.Repeat("Publish '", 1000)
	for message, want := range map[string]bool{
		failed: true, failed + long: true, long + failed: false,
		failed + strings.Repeat(long, 100): false,
	} {
		a := told(t, lockListed("0xa", "front door", "V"))
		w := &waiter{verb: "get", keys: []string{"pin_code"}, result: make(chan error, 1)}
		a.locks["0xa"].waiter = w
		a.receive("z/bridge/logging", fmt.Appendf(nil, `{"level":"error","message":%q}`, message), false)
		if len(w.result) == 1 != want {
			t.Errorf("%d bytes, %.60s: it counts as a failure: %v", len(message), message, !want)
		}
		if want {
			if err := <-w.result; adapter.ClassOf(err) != adapter.Offline || len(err.Error()) > 200 {
				t.Errorf("%.60s: %.300s", message, err)
			}
		}
	}
}

// The error of an unreachable broker is logged, sent in events, and stored.
func TestConnectionErrorsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 50_000)
	b := broker{host: "broker:1883"}
	for name, err := range map[string]error{
		"an answer":                unreachable(b, errors.New("malformed HTTP response "+long)),
		"the names it is made for": unreachable(b, &tls.CertificateVerificationError{Err: errors.New(long)}),
		"what is no MQTT":          refused(b, nil, errors.New(long)),
	} {
		if got := err.Error(); len(got) > 600 || !utf8.ValidString(got) || !strings.Contains(got, "broker:1883") {
			t.Errorf("%s: %d bytes, %.100s", name, len(got), got)
		}
	}
	if err := unreachable(b, &tls.CertificateVerificationError{Err: errors.New(long)}); !strings.Contains(err.Error(),
		"as CA") {
		t.Errorf("it contains no advice: %.100s", err)
	}
}
