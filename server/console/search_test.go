package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func TestSearch_FindsNames(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "ecobee"))
	lock := b.Device(t, "august")
	ada := addGuest(t, b, b.AccessSystem(t), "Ada Adams", "ada@example.com")
	code := createCode(t, b, lock, "Adams family")

	body := mustOpen(t, b, "/search?q=adams")
	mustContain(t, body, "/codes/"+code, "/people/"+ada.identity, "/people/users/"+ada.user, ">Codes<", ">People<")
	mustLack(t, body, "/locks/"+lock)
	mustContain(t, mustOpen(t, b, "/search?q=simulated+access"), ">Accounts<")
	mustContain(t, mustOpen(t, b, "/search?q=no-such-name"), "Nothing found")
	mustContain(t, mustOpen(t, b, "/search?q=a"), "at least two characters")
	mustContain(t, mustOpen(t, b, "/search?q=%5Badams"), "Nothing found")
	mustLack(t, mustOpen(t, b, "/search?q=%3Cscript%3E"), "<script>")

	lastFour := b.APIKey[len(b.APIKey)-4:]
	if _, body := openPage(t, b, domain.RoleAdmin, "/search?q="+lastFour); !strings.Contains(body, "API keys") {
		t.Error("an administrator does not find a key by its last four characters")
	}
	mustLack(t, mustOpen(t, b, "/search?q="+lastFour), "API keys")
}

func TestSearch_LeadsFromIDToPage(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "ecobee", "minut"))
	lock, system := b.Device(t, "august"), b.AccessSystem(t)
	ada := addGuest(t, b, system, "Ada Adams", "ada@example.com")
	var events struct {
		Events []struct {
			EventID string `json:"event_id"`
		}
	}
	b.Post(t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "limit": 1}, &events)
	absent := uuid.NewString()
	for id, path := range map[string]string{
		lock:                       "/locks/" + lock,
		b.Device(t, "ecobee"):      "/thermostats/" + b.Device(t, "ecobee"),
		b.Device(t, "minut"):       "/noise-sensors/" + b.Device(t, "minut"),
		ada.identity:               "/people/" + ada.identity,
		ada.user:                   "/people/users/" + ada.user,
		system.AccountID:           "/accounts/" + system.AccountID,
		system.ID:                  "/people/users?system=" + system.ID,
		events.Events[0].EventID:   "/activity?subject=" + events.Events[0].EventID,
		strings.ToUpper(absent):    "/activity?request=" + absent,
		createCode(t, b, lock, ""): "/codes/",
	} {
		status, to := openPage(t, b, domain.RoleViewer, "/search?q="+id)
		if status != http.StatusSeeOther || !strings.HasPrefix(to, strings.TrimPrefix(b.page(path), b.console)) {
			t.Errorf("search %s: %d %s; want %s", id, status, to, path)
		}
	}
}

// createCode creates a code and returns its identifier.
func createCode(t *testing.T, b *bed, lock, name string) string {
	t.Helper()
	in := map[string]any{"device_id": lock}
	if name != "" {
		in["name"] = name
	}
	var out struct {
		AccessCode struct {
			AccessCodeID string `json:"access_code_id"`
		} `json:"access_code"`
	}
	if status := b.Post(t, "/access_codes/create", in, &out); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	return out.AccessCode.AccessCodeID
}
