package spec_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// comesOnTheLock creates a code and waits until it is set.
func comesOnTheLock(t *testing.T, s *apptest.Server, device string) {
	t.Helper()
	var made api.AccessCodeCreatedResponse
	if status := s.Post(t, "/access_codes/create", params{"device_id": device}, &made); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	apptest.Until(t, "a code is set on the lock", func() bool {
		var now api.AccessCodeResponse
		s.Post(t, "/access_codes/get", params{"access_code_id": made.AccessCode.AccessCodeID}, &now)
		return now.AccessCode.Status == "set"
	})
}

// A code with an extreme time does not block other codes of the lock.
func TestCode_TimesOutOfRange(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("smartthings"))
	device := s.Device(t, "smartthings")
	account := accounts(t, s, params{})[0].ConnectedAccountID
	c := session(t, s, params{"user_identifier_key": "mallory", "connected_account_ids": []string{account}})
	for _, frame := range [][2]string{
		{"2026-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"},
		{"0000-01-01T00:00:00+23:59", "2030-01-01T00:00:00Z"},
	} {
		if got := refused(
			t,
			s,
			c.Token,
			"/access_codes/create",
			params{"device_id": device, "starts_at": frame[0], "ends_at": frame[1]},
		); !strings.HasPrefix(
			got,
			"400 ",
		) {
			t.Errorf("%v: %s", frame, got)
		}
	}
	comesOnTheLock(t, s, device)
	if got := refused(t, s, s.APIKey, "/access_codes/list", params{"device_id": device}); got != "200 " {
		t.Errorf("the list: %s", got)
	}
}

// A vendor may express "forever" as the end of the year 9999 in a time zone west of Greenwich.
func TestCode_VendorEndOfTime(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	token, err := s.App.Sandbox.Token(
		t.Context(),
		account.Account{Adapter: account.SandboxAdapter, Config: []byte(`{"key":"vendor","profiles":["august"]}`)},
	)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(s.CloudURL())
	if err != nil {
		t.Fatal(err)
	}
	vendor := httptest.NewServer(
		&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
			ModifyResponse: func(res *http.Response) error {
				if res.Request.Method != http.MethodGet || !strings.HasSuffix(res.Request.URL.Path, "/access_codes") {
					return nil
				}
				b, err := io.ReadAll(res.Body)
				if err != nil {
					return err
				}
				b = bytes.Replace(b, []byte(`"ends_at":null`), []byte(`"ends_at":"9999-12-31T23:59:59-05:00"`), 1)
				b = bytes.Replace(b, []byte(`"starts_at":null`), []byte(`"starts_at":"2020-01-01T00:00:00-05:00"`), 1)
				res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
				res.Header.Set("Content-Length", strconv.Itoa(len(b)))
				return nil
			},
		},
	)
	t.Cleanup(vendor.Close)
	id, err := s.App.Access.Accounts.ConnectAccount(
		t.Context(),
		account.NewAccount{
			WorkspaceID: uuid.MustParse(s.WorkspaceID),
			Adapter:     "devicecloud",
			DisplayName: "Vendor",
			Config:      fmt.Appendf(nil, `{"base_url":%q,"token":%q}`, vendor.URL, token),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	var devices []string
	apptest.Until(t, "its lock is read", func() bool {
		if devices = devicesOf(
			t,
			s,
			s.APIKey,
			"/devices/list",
			params{"connected_account_id": id.String()},
		); len(
			devices,
		) != 1 {
			return false
		}
		read, err := s.App.Access.Devices.HasBeenRead(t.Context(), uuid.MustParse(devices[0]))
		return err == nil && read
	})
	if got := refused(t, s, s.APIKey, "/access_codes/unmanaged/list", params{"device_id": devices[0]}); got != "200 " {
		t.Errorf("the unmanaged codes: %s", got)
	}
	comesOnTheLock(t, s, devices[0])
}
