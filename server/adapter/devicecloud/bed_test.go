package devicecloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cloud is a sandbox with one device, an adapter for it, and a server for both.
type cloud struct {
	server  *httptest.Server
	adapter *devicecloud.Adapter
	account sandbox.Account
	client  *http.Client
	stalled chan struct{} // closed: calls of the contract get no response
	stall   func()
}

func newCloud(t *testing.T, profile string) *cloud {
	t.Helper()
	box := sandbox.New(sandbox.Options{Seed: 1, Speed: 1000})
	t.Cleanup(box.Close)
	account, err := box.EnsureAccount(sandbox.AccountSpec{Key: t.Name(), Profiles: []string{profile}})
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{account: account, stalled: make(chan struct{})}
	c.stall = sync.OnceFunc(func() { close(c.stalled) })
	mux := http.NewServeMux()
	mux.HandleFunc("/push", func(w http.ResponseWriter, r *http.Request) { c.adapter.Receive(w, r) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-c.stalled:
			_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the client only after the body
			<-r.Context().Done()
		default:
			box.Handler().ServeHTTP(w, r)
		}
	})
	c.server = httptest.NewServer(mux)
	t.Cleanup(c.server.Close)
	c.client = c.server.Client()
	c.adapter = devicecloud.New(devicecloud.Config{
		BaseURL: c.server.URL, Token: account.Token, PushURL: c.server.URL + "/push",
	})
	t.Cleanup(func() { _ = c.adapter.Close() })
	if err := c.adapter.Subscribe(t.Context()); err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	if e := <-c.adapter.Events(); e.Kind != adapter.Resync { // later events come from the vendor
		t.Fatalf("Subscribe sent %+v", e)
	}
	return c
}

func (c *cloud) lock() string { return c.account.Locks[0].ID }

// control calls a control of the device.
func (c *cloud) control(t testing.TB, method, what string, body, out any) {
	t.Helper()
	c.do(t, method, "/sandbox/locks/"+c.lock()+"/"+what, body, out)
}

func (c *cloud) do(t testing.TB, method, path string, body, out any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.server.URL+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.account.Token)
	resp, err := c.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s (%v)", method, path, resp.StatusCode, data, err)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *cloud) faults(t testing.TB, f sandbox.Faults) {
	t.Helper()
	c.control(t, http.MethodPut, "faults", f, nil)
}

func (c *cloud) bed() adaptertest.Bed {
	type keypad struct {
		ID   string `json:"access_code_id,omitempty"`
		Name string `json:"name,omitempty"`
		Code string `json:"code,omitempty"`
	}
	rate := func(class string) sandbox.Faults {
		return sandbox.Faults{FailureRate: map[string]float64{class: 1}}
	}
	return adaptertest.Bed{
		Adapter: c.adapter,
		Device:  adapter.DeviceRef(c.lock()),
		Memory: func(t testing.TB) []adaptertest.OnDevice {
			var memory struct {
				Codes []struct {
					ID       adapter.CodeRef `json:"access_code_id"`
					PIN      string          `json:"code"`
					Name     string          `json:"name"`
					StartsAt *time.Time      `json:"starts_at"`
					EndsAt   *time.Time      `json:"ends_at"`
				} `json:"access_codes"`
			}
			c.control(t, http.MethodGet, "memory", nil, &memory)
			var codes []adaptertest.OnDevice
			for _, code := range memory.Codes {
				codes = append(codes, adaptertest.OnDevice{
					Ref:      code.ID,
					PIN:      code.PIN,
					Name:     code.Name,
					StartsAt: code.StartsAt,
					EndsAt:   code.EndsAt,
				})
			}
			return codes
		},
		SetOnline: func(t testing.TB, online bool) {
			if err := c.adapter.SetOnline(t.Context(), adapter.DeviceRef(c.lock()), online); err != nil {
				t.Fatalf("SetOnline: %v", err)
			}
		},
		AddForeign: func(t testing.TB, name, pin string) adapter.CodeRef {
			ref, err := c.adapter.AddCode(t.Context(), adapter.DeviceRef(c.lock()), name, pin, "")
			if err != nil {
				t.Fatalf("AddCode: %v", err)
			}
			return ref
		},
		ChangeForeign: func(t testing.TB, code adapter.CodeRef, pin string) {
			c.control(t, http.MethodPatch, "keypad/codes/"+string(code), keypad{Code: pin}, nil)
		},
		DeleteForeign: func(t testing.TB, code adapter.CodeRef) {
			c.control(t, http.MethodDelete, "keypad/codes/"+string(code), nil, nil)
		},
		Enter: func(t testing.TB, pin string) {
			if opened, err := c.adapter.EnterCode(t.Context(), adapter.DeviceRef(c.lock()), pin); err != nil ||
				!opened {
				t.Fatalf("EnterCode: %v, %v", opened, err)
			}
		},
		EnterWrong: func(t testing.TB, pin string) {
			if opened, err := c.adapter.EnterCode(t.Context(), adapter.DeviceRef(c.lock()), pin); err != nil || opened {
				t.Fatalf("EnterCode: %v, %v", opened, err)
			}
		},
		LockByHand: func(t testing.TB) {
			if err := c.adapter.LockByHand(t.Context(), adapter.DeviceRef(c.lock())); err != nil {
				t.Fatalf("LockByHand: %v", err)
			}
		},
		Jam: func(t testing.TB) { c.control(t, http.MethodPost, "jam", map[string]bool{"jammed": true}, nil) },
		Remove: func(t testing.TB) {
			if err := c.adapter.RemoveDevice(t.Context(), adapter.DeviceRef(c.lock())); err != nil {
				t.Fatalf("RemoveDevice: %v", err)
			}
		},
		Fill:      func(t testing.TB) { c.faults(t, sandbox.Faults{SlotsTaken: 1000}) },
		Revoke:    func(t testing.TB) { c.do(t, http.MethodPost, "/sandbox/account/revoke", nil, nil) },
		DropNext:  func(t testing.TB) { c.faults(t, sandbox.Faults{DropNext: 1}) },
		BreakNext: func(t testing.TB) { c.faults(t, rate("failed")) },
		CutNext:   func(t testing.TB) { c.faults(t, rate("unconfirmed")) },
		FailNext:  func(t testing.TB, class adapter.Class) { c.faults(t, rate(string(class))) },
		Heal:      func(t testing.TB) { c.faults(t, sandbox.Faults{}) },
		Disconnect: func(testing.TB) {
			c.server.CloseClientConnections()
		},
		Stall: func(testing.TB) { c.stall() },
		Stop:  func(testing.TB) { c.server.Close() },
		AdjustByHand: func(t testing.TB, setting adapter.ThermostatSetting) {
			if err := c.adapter.AdjustThermostat(t.Context(), adapter.DeviceRef(c.lock()), setting); err != nil {
				t.Fatalf("AdjustThermostat: %v", err)
			}
		},
		SetTemperature: func(t testing.TB, celsius float64) {
			if err := c.adapter.SetTemperature(t.Context(), adapter.DeviceRef(c.lock()), celsius); err != nil {
				t.Fatalf("SetTemperature: %v", err)
			}
		},
	}
}

// TestConformance runs the suite for every profile of the sandbox.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, profile := range sandbox.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, func(t *testing.T) adaptertest.Bed { return newCloud(t, profile).bed() })
		})
	}
}

// TestNoiseSensorConformance runs the suite for every profile of noise sensors.
func TestNoiseSensorConformance(t *testing.T) {
	t.Parallel()
	for _, profile := range sandbox.NoiseProfiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			adaptertest.RunNoiseSensor(t, func(t *testing.T) adaptertest.Bed {
				c := newCloud(t, profile)
				bed := c.bed()
				bed.MakeNoise = func(t testing.TB, decibels float64) {
					c.control(t, http.MethodPost, "noise", map[string]float64{"decibels": decibels}, nil)
				}
				return bed
			})
		})
	}
}

// TestThermostatConformance runs the suite for every profile of thermostats.
func TestThermostatConformance(t *testing.T) {
	t.Parallel()
	for _, profile := range sandbox.ThermostatProfiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			adaptertest.RunThermostat(t, func(t *testing.T) adaptertest.Bed { return newCloud(t, profile).bed() })
		})
	}
}

// TestThermostatConformanceTroubled runs the suite with late and duplicate pushes, and with a lagging list.
func TestThermostatConformanceTroubled(t *testing.T) {
	t.Parallel()
	lag := 20
	adaptertest.RunThermostat(t, func(t *testing.T) adaptertest.Bed {
		c := newCloud(t, "ecobee")
		bed := c.bed()
		c.faults(t, sandbox.Faults{ListLagMS: &lag, LateWebhookMS: 5, DuplicateWebhook: 0.5})
		return bed
	})
}

// TestConformanceMasked runs the suite for a lock whose PINs are hidden.
func TestConformanceMasked(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(t *testing.T) adaptertest.Bed {
		c := newCloud(t, "yale")
		c.faults(t, sandbox.Faults{Masked: true})
		bed := c.bed()
		keep := func(f sandbox.Faults) sandbox.Faults { f.Masked = true; return f }
		bed.Heal = func(t testing.TB) { c.faults(t, keep(sandbox.Faults{})) }
		return bed
	})
}

// TestConformanceTroubled runs the suite with late and duplicate pushes, and with a lagging list.
func TestConformanceTroubled(t *testing.T) {
	t.Parallel()
	lag := 20
	adaptertest.Run(t, func(t *testing.T) adaptertest.Bed {
		c := newCloud(t, "schlage")
		bed := c.bed()
		c.faults(t, sandbox.Faults{ListLagMS: &lag, LateWebhookMS: 5, DuplicateWebhook: 0.5})
		return bed
	})
}
