package webhooks

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"code.dny.dev/ssrf"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// The vector of spec/contract.md section 7, which the verifier of the receivers accepts.
func TestSignatureIsThatOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	got, err := sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := sign("whsec_-_-_", "", time.Time{}, nil); err == nil {
		t.Error("a secret that is no base64 signs")
	}
}

func TestScheduleIsThatOfTheContract(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	failed := answer{status: 500, problem: "no"}
	for step, planned := range []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour} {
		for range 100 {
			a := o.next(failed, step)
			if a.State != access.DeliveryPending || a.Pause < planned || a.Pause > planned*11/10 {
				t.Fatalf("step %d: %s after %s", step, a.State, a.Pause)
			}
		}
	}
	if a := o.next(failed, 7); a.State != access.DeliveryFailed {
		t.Errorf("after the eighth attempt: %s", a.State)
	}
	if o.Timeout != 15*time.Second || o.DisableAfter != 120*time.Hour {
		t.Errorf("%s, %s", o.Timeout, o.DisableAfter)
	}
	failed.abort = true
	if a := o.next(failed, 0); a.State != access.DeliveryFailed {
		t.Errorf("what the endpoint does not want again: %s", a.State)
	}
}

func TestRetryAfterIsHeededWithinBounds(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "60": time.Minute, "99999999999": (1 << 30) * time.Second,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %s", header, got)
		}
	}
	for asked, c := range map[time.Duration]struct{ least, most time.Duration }{
		time.Second: {5 * time.Second, 6 * time.Second}, time.Minute: {time.Minute, time.Minute}, 48 * time.Hour: {time.Hour, time.Hour},
	} {
		a := answer{status: 429, problem: "slow down", retryAfter: asked}
		if got := o.next(a, 0).Pause; got < c.least || got > c.most {
			t.Errorf("%s: %s", asked, got)
		}
		if got := o.health(0, 0, []answer{a}).Pause; got != min(asked, time.Hour) {
			t.Errorf("%s: the endpoint pauses for %s", asked, got)
		}
	}
}

func TestFailingEndpointIsProbedEverLessOften(t *testing.T) {
	t.Parallel()
	o := New(nil, Options{}).opt
	failed := answer{status: 500, problem: "no"}
	last := time.Duration(0)
	for n := range 20 {
		h := o.health(n, time.Hour, []answer{failed})
		if h.Failures != n+1 || h.Pause < last || h.Pause > time.Minute || (h.Pause > 0) != (width(h.Failures) == 1) {
			t.Errorf("%d: %+v, width %d", n, h, width(h.Failures))
		}
		last = h.Pause
	}
	if h := o.health(19, time.Hour, []answer{failed, {status: 200}}); h.Failures != 0 || h.Pause != 0 || !h.Recovered {
		t.Errorf("recovered: %+v", h)
	}
	if h := o.health(1, 121*time.Hour, []answer{failed}); h.Disable == "" {
		t.Error("five days of failure do not disable")
	}
	if h := o.health(1, 121*time.Hour, []answer{{status: 200}, failed}); h.Disable != "" {
		t.Error("a success in between does not count")
	}
}

func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	t.Parallel()
	guard := newGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd12::/16")})
	for address, public := range map[string]bool{
		"127.0.0.1": false, "127.8.8.8": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.1.0.1": false, "0.0.0.0": false, "::": false,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "fd00:ec2::254": false,
		"100.64.0.1": false, "100.100.100.200": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "2001:db8::1": false, "198.18.0.1": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "240.0.0.1": false, "2002:7f00:1::": false, "2001::1": false,
		"8.8.8.8": true, "2606:4700:4700::1111": true, "10.1.2.3": true, "fd12::1": true,
	} {
		network := "tcp4"
		if strings.Contains(address, ":") {
			network, address = "tcp6", "["+address+"]"
		}
		if err := guard.Safe(network, address+":8080", nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	if guard.Safe("udp4", "8.8.8.8:80", nil) == nil {
		t.Error("something else than TCP passes")
	}
}

// The server listens at the addresses that the names stand for: it is the guard that keeps the request away.
func TestNameOfAPrivateAddressIsNotDialled(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.invalid")
	reached := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1"} {
		res, err := newClient(nil).Get("http://" + host + port)
		if err == nil {
			t.Errorf("%s answers %s", host, res.Status)
			continue
		}
		if numeric := strings.HasPrefix(host, "2") || strings.HasPrefix(host, "0x") || host == "127.1"; !numeric && !errors.Is(err, ssrf.ErrProhibitedIP) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if reached > 0 {
		t.Errorf("reached %d times", reached)
	}
	if res, err := newClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}).Get(s.URL); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("an address that is allowed: %v", err)
	}
}
