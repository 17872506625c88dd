package spec_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/phone"
)

const createPhone = "/phones/simulate/create_sandbox_phone"

// newPhone creates a phone.
func newPhone(t *testing.T, s *apptest.Server, in params) api.Phone {
	t.Helper()
	var out api.PhoneResponse
	if status := s.Post(t, createPhone, in, &out); status != http.StatusOK || !out.Ok {
		t.Fatalf("create a phone of %v: %d", in, status)
	}
	return out.Phone
}

// phonesOf lists the identifiers of phones.
func phonesOf(t *testing.T, s *apptest.Server, in params) []string {
	t.Helper()
	var out api.PhonesResponse
	if status := s.Post(t, "/phones/list", in, &out); status != http.StatusOK || !out.Ok || out.Phones == nil {
		t.Fatalf("list the phones with %v: %d", in, status)
	}
	ids := []string{}
	for _, p := range out.Phones {
		ids = append(ids, p.DeviceID)
	}
	return ids
}

// deactivations lists the phone.deactivated events, which must have the published fields only.
func deactivations(t *testing.T, s *apptest.Server) (phones []string) {
	t.Helper()
	var out api.EventsResponse
	s.Post(t, "/events/list", params{"since": "2020-01-01", "event_type": "phone.deactivated"}, &out)
	for _, e := range out.Events {
		id, _ := e.AdditionalProperties["device_id"].(string)
		phones = append(phones, id)
		if want := (params{"device_id": id, "device_custom_metadata": params{}}); !reflect.DeepEqual(
			e.AdditionalProperties,
			want,
		) {
			t.Errorf("the event has %v, want %v", e.AdditionalProperties, want)
		}
	}
	return phones
}

// deactivationsSent returns the phone.deactivated events that a webhook receives.
func deactivationsSent(t *testing.T, s *apptest.Server) <-chan params {
	t.Helper()
	received := make(chan params, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e params
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		received <- e
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(hook.Close)
	madeBy(t, s, "/webhooks/create", "webhook", params{"url": hook.URL, "event_types": []string{"phone.deactivated"}})
	return received
}

// A phone can be read until it is deactivated, its person is deleted, or the workspace is reset.
func TestPhones_LiveUntilDeactivated(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	received := deactivationsSent(t, s)
	jane, joe := newPerson(t, s, params{}).UserIdentityID, newPerson(t, s, params{}).UserIdentityID
	plain := newPhone(t, s, params{"user_identity_id": jane})
	if plain.DeviceType != "android_phone" || plain.DisplayName != "Samsung Galaxy S10" ||
		plain.WorkspaceID != s.WorkspaceID || plain.CreatedAt.IsZero() || plain.CustomMetadata == nil ||
		plain.Errors == nil || plain.Warnings == nil {
		t.Errorf("a phone with defaults: %+v", plain)
	}
	apple := newPhone(t, s, params{
		"user_identity_id":    joe,
		"phone_metadata":      params{"operating_system": "ios", "device_model": "iPhone 15"},
		"assa_abloy_metadata": params{"seos_tsm_endpoint_id": 1200000000},
	})
	endpoints := apple.Properties.AssaAbloyCredentialServiceMetadata
	if apple.DeviceType != "ios_phone" || apple.DisplayName != "iPhone 15" || !endpoints.HasActiveEndpoint ||
		!slices.Equal(endpoints.Endpoints, []api.AssaAbloyEndpoint{{EndpointID: "1200000000", IsActive: true}}) {
		t.Errorf("an iPhone: %+v", apple)
	}
	var one api.PhoneResponse
	if s.Post(t, "/phones/get", params{"device_id": apple.DeviceID}, &one); !reflect.DeepEqual(one.Phone, apple) {
		t.Errorf("read %+v, want %+v", one.Phone, apple)
	}
	for name, c := range map[string]struct {
		in   params
		want []string
	}{
		"all":             {params{}, []string{plain.DeviceID, apple.DeviceID}},
		"of one":          {params{"owner_user_identity_id": strings.ToUpper(joe)}, []string{apple.DeviceID}},
		"of an unknown":   {params{"owner_user_identity_id": uuid.NewString()}, []string{}},
		"of a credential": {params{"owner_user_identity_id": joe, "acs_credential_id": uuid.NewString()}, []string{}},
	} {
		if got := phonesOf(t, s, c.in); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := devicesOf(t, s, s.APIKey, "/devices/list", params{"device_ids": []string{apple.DeviceID}}); got != nil {
		t.Errorf("the list of devices has the phone")
	}

	madeBy(t, s, "/phones/deactivate", "", params{"device_id": apple.DeviceID})
	for _, path := range []string{"/phones/get", "/phones/deactivate"} {
		if got := refused(t, s, s.APIKey, path, params{"device_id": apple.DeviceID}); got != "404 phone_not_found" {
			t.Errorf("%s after the deactivation: %s", path, got)
		}
	}
	var e params
	apptest.Until(t, "the webhook receives the event", func() bool {
		select {
		case e = <-received:
			return true
		default:
			return false
		}
	})
	if e["event_type"] != "phone.deactivated" || e["device_id"] != apple.DeviceID {
		t.Errorf("the webhook received %v", e)
	}
	madeBy(t, s, "/user_identities/delete", "", params{"user_identity_id": jane})
	if got, want := deactivations(t, s), []string{apple.DeviceID, plain.DeviceID}; !slices.Equal(got, want) {
		t.Errorf("phone.deactivated of %v, want %v", got, want)
	}
	newPhone(t, s, params{"user_identity_id": joe})
	madeBy(t, s, "/workspaces/reset_sandbox", "action_attempt", params{})
	if got := phonesOf(t, s, params{}); len(got)+len(deactivations(t, s)) != 0 {
		t.Errorf("after a reset there are the phones %v, or events", got)
	}
}

func TestPhones_BadRequests(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	jane := newPerson(t, s, params{}).UserIdentityID
	with := func(metadata, name string, value any) params {
		return params{"user_identity_id": jane, metadata: params{name: value}}
	}
	for name, c := range map[string]struct {
		path string
		in   params
		want string
	}{
		"a lock":            {"/phones/get", params{"device_id": s.Device(t, "august")}, "404 phone_not_found"},
		"no identifier":     {"/phones/get", params{}, "400 invalid_input"},
		"a number":          {"/phones/list", params{"owner_user_identity_id": 5}, "400 invalid_input"},
		"no person":         {createPhone, params{}, "400 invalid_input"},
		"an unknown system": {createPhone, with("phone_metadata", "operating_system", "os/2"), "400 invalid_input"},
		"an empty model":    {createPhone, with("phone_metadata", "device_model", ""), "400 invalid_input"},
		"a bad endpoint":    {createPhone, with("assa_abloy_metadata", "seos_tsm_endpoint_id", -1), "400 invalid_input"},
	} {
		if got := refused(t, s, s.APIKey, c.path, c.in); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := phonesOf(t, s, params{}); len(got) != 0 {
		t.Errorf("the phones %v exist", got)
	}
}

// A client session deactivates the phones of its own person. Nothing is visible to other workspaces.
func TestPhones_BelongToOnePerson(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	jane, joe := newPerson(t, s, params{}).UserIdentityID, newPerson(t, s, params{}).UserIdentityID
	hers, his := newPhone(t, s, params{"user_identity_id": jane}), newPhone(t, s, params{"user_identity_id": joe})
	janes := session(t, s, params{"user_identity_id": jane}).Token
	anonymous := session(t, s, params{"user_identifier_key": uuid.NewString()}).Token
	other := s.Workspace(t, "Other")
	for name, c := range map[string]struct{ token, path, phone, want string }{
		"another person's":     {janes, "/phones/deactivate", his.DeviceID, "404 phone_not_found"},
		"no person's":          {anonymous, "/phones/deactivate", hers.DeviceID, "404 phone_not_found"},
		"another workspace's":  {other.APIKey, "/phones/deactivate", hers.DeviceID, "404 phone_not_found"},
		"read by a stranger":   {other.APIKey, "/phones/get", hers.DeviceID, "404 phone_not_found"},
		"read by a session":    {janes, "/phones/get", hers.DeviceID, "403 forbidden"},
		"listed by a session":  {janes, "/phones/list", hers.DeviceID, "403 forbidden"},
		"created by a session": {janes, createPhone, hers.DeviceID, "403 forbidden"},
	} {
		if got := refused(t, s, c.token, c.path, params{"device_id": c.phone}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := phonesOf(t, other, params{"owner_user_identity_id": jane}); len(got) != 0 {
		t.Errorf("another workspace lists %v", got)
	}
	for name, of := range map[string]string{"foreign": jane, "unknown": uuid.NewString()} {
		got := refused(t, other, other.APIKey, createPhone, params{"user_identity_id": of})
		if got != "404 user_identity_not_found" {
			t.Errorf("a phone of a %s person: %s", name, got)
		}
	}
	if got := refused(t, s, janes, "/phones/deactivate", params{"device_id": hers.DeviceID}); got != "200 " {
		t.Errorf("her own phone: %s", got)
	}
	if got := phonesOf(t, s, params{}); !slices.Equal(got, []string{his.DeviceID}) {
		t.Errorf("the phones %v are left", got)
	}

	inhabited, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Real", "", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := s.Credential(t, auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{inhabited.ID}})
	if got := refused(t, s, key, createPhone, params{"user_identity_id": jane}); got != "400 workspace_not_sandbox" {
		t.Errorf("a phone of a real workspace: %s", got)
	}
}

// One installation of an app is one phone of a person, also for requests at the same time. A person has a limited
// number of phones.
func TestPhones_InstallationsAndLimit(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	jane, joe := newPerson(t, s, params{}).UserIdentityID, newPerson(t, s, params{}).UserIdentityID
	mine := params{"user_identity_id": jane, "custom_sdk_installation_id": "app 1"}
	made := make([]api.PhoneResponse, 4)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() { tried(t, s, createPhone, mine, &made[i]) })
	}
	all.Wait()
	changed := maps.Clone(mine)
	changed["phone_metadata"] = params{"operating_system": "ios"}
	for i, again := range append([]api.Phone{newPhone(t, s, mine), newPhone(t, s, changed)},
		made[1].Phone, made[2].Phone, made[3].Phone) {
		if !reflect.DeepEqual(again, made[0].Phone) {
			t.Errorf("retry %d returned %+v, want %+v", i, again, made[0].Phone)
		}
	}
	first := made[0].Phone.DeviceID
	theirs := newPhone(t, s, params{"user_identity_id": joe, "custom_sdk_installation_id": "app 1"}).DeviceID
	madeBy(t, s, "/phones/deactivate", "", params{"device_id": first})
	second := newPhone(t, s, mine).DeviceID
	if ids := []string{first, theirs, second}; first == theirs || second == first || second == theirs {
		t.Errorf("the phones %v, want three different ones", ids)
	}

	for n := 1; n < phone.MaxPhones; n++ {
		newPhone(t, s, params{"user_identity_id": jane})
	}
	var f failure
	if status := s.Post(t, createPhone, params{"user_identity_id": jane}, &f); status != http.StatusBadRequest ||
		f.Error.Type != "invalid_input" || !strings.Contains(f.Error.Message, "/phones/deactivate") {
		t.Errorf("one phone too many: %d %+v", status, f)
	}
	if again := newPhone(t, s, mine); again.DeviceID != second {
		t.Errorf("a person with the maximum of phones gets %s for an installation, want %s", again.DeviceID, second)
	}
	if n := len(phonesOf(t, s, params{"owner_user_identity_id": jane})); n != phone.MaxPhones {
		t.Errorf("%d phones", n)
	}
}
