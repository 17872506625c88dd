package rest_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestCodeIsCreatedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	status, out := call(
		t,
		s,
		http.MethodPost,
		"/access_codes/create",
		in{"device_id": device, "name": "Guest", "code": "4812", "sync": true},
	)
	made, _ := out["access_code"].(in)
	if status != http.StatusOK || made["status"] != "set" || made["code"] != "4812" || made["type"] != "ongoing" ||
		made["name"] != "Guest" {
		t.Fatalf("create: status %d: %v", status, out)
	}
	attempt, _ := out["action_attempt"].(in)
	result, _ := attempt["result"].(in)
	if shown, _ := result["access_code"].(in); attempt["status"] != "success" ||
		shown["access_code_id"] != made["access_code_id"] {
		t.Errorf("the attempt does not carry the code: %v", attempt)
	}
	id := made["access_code_id"]
	changed := must(
		t,
		s,
		"/access_codes/update",
		"action_attempt",
		in{"access_code_id": id, "code": "4813", "sync": true},
	)
	if changed["status"] != "success" || changed["action_type"] != "UPDATE_ACCESS_CODE" {
		t.Errorf("update: %v", changed)
	}
	if got := must(
		t,
		s,
		"/access_codes/get",
		"access_code",
		in{"device_id": device, "code": "4813"},
	); got["access_code_id"] != id {
		t.Errorf("by device and PIN: %v", got)
	}
	gone := must(t, s, "/access_codes/delete", "action_attempt", in{"access_code_id": id, "sync": true})
	if result, _ := gone["result"].(in); gone["status"] != "success" || result == nil || len(result) != 0 {
		t.Errorf("delete: %v", gone)
	}
	if status, out := call(
		t,
		s,
		http.MethodPost,
		"/access_codes/get",
		in{"access_code_id": id},
	); status != http.StatusNotFound {
		t.Errorf("a deleted code: status %d: %v", status, out)
	}
}

func TestWithoutSyncTheAttemptIsPending(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithSpeed(1))
	_, out := call(t, s, http.MethodPost, "/access_codes/create", in{"device_id": s.Device(t, "august")})
	attempt, _ := out["action_attempt"].(in)
	if attempt["status"] != "pending" || attempt["result"] != nil || attempt["error"] != nil ||
		attempt["action_type"] != "CREATE_ACCESS_CODE" {
		t.Errorf("the attempt: %v", attempt)
	}
}

func TestConversion_VendorForbids(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("kwikset"))
	found := s.UnmanagedCodes(t, s.Device(t, "kwikset"))
	if len(found) == 0 || !found[0].CannotBeManaged || found[0].IsManaged {
		t.Fatalf("unmanaged codes: %+v", found)
	}
	attempt := must(
		t,
		s,
		"/access_codes/unmanaged/convert_to_managed",
		"action_attempt",
		in{"access_code_id": found[0].AccessCodeID, "sync": true},
	)
	reason, _ := attempt["error"].(in)
	if attempt["status"] != "error" || attempt["result"] != nil || reason["type"] == "" || reason["message"] == "" {
		t.Errorf("the attempt: %v", attempt)
	}
}

func TestHiddenPINsAreAbsent(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("smartthings"))
	_, out := call(t, s, http.MethodGet, "/access_codes/unmanaged/list?device_id="+s.Device(t, "smartthings"), nil)
	list, _ := out["access_codes"].([]any)
	if len(list) == 0 {
		t.Fatalf("no unmanaged codes: %v", out)
	}
	for _, c := range list {
		if code, there := c.(in)["code"]; there {
			t.Errorf("code is %v", code)
		}
	}
}
