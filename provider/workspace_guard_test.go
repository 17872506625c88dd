package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

// The tests of this file are about what holds for the connection, and so for every resource.

func TestKeyOfAnotherWorkspaceEmptiesNeitherSetsNorLocks(t *testing.T) {
	f := startFakeLocks(t)
	const stranger = "99999999-2222-4333-8444-555555555555"
	config := f.config(codeSet(`code = "905173846251"`, lockA) + exclusive(lockB))
	refusal := says(
		"belongs to workspace "+stranger,
		"the resource was in workspace "+fakeWorkspace,
		"Nothing is removed from the state",
	)
	codes, devices := map[string]*fakeCode{}, []map[string]any{}
	swap := func(workspace string) func() {
		return func() {
			f.do(func() {
				f.workspace = workspace
				codes, f.codes = f.codes, codes
				devices, f.devices = f.devices, devices
			})
		}
	}
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config},
		{PreConfig: swap(stranger), Config: config, ExpectError: refusal},
		{Config: config, Destroy: true, ExpectError: refusal},
		{PreConfig: swap(fakeWorkspace), Config: config, ConfigPlanChecks: plansNothing()},
		{ // what is gone from the right workspace is gone
			PreConfig:        func() { f.do(func() { clear(f.codes) }) },
			Config:           config,
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, nanny),
		},
	}})
}

func TestSetDoesNotWaitWhereThatIsTheSetting(t *testing.T) {
	f := startFakeLocks(t)
	f.noAttempts, f.laterBy = true, 1000 // never
	config := func(pin string) string {
		return strings.Replace(
			f.config(codeSet(`code = "`+pin+`"`, lockA, lockB)),
			"{\n",
			"{\n  wait_until_on_lock = false\n",
			1,
		)
	}
	stays := []statecheck.StateCheck{
		onLock(lockA, "status", isText("setting")),
		onLock(lockB, "status", isText("setting")),
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config("905173846251"), ConfigStateChecks: stays},
		{Config: config("905173846251"), ConfigPlanChecks: plansNothing()},
		{Config: config("715938426052"), ConfigStateChecks: stays},
		{PreConfig: func() { f.do(func() { clear(f.codes) }) }, Config: f.config("")},
	}})
}

func TestKeyOfAnotherWorkspaceEmptiesNeitherDevicesNorPeople(t *testing.T) {
	const stranger = "99999999-2222-4333-8444-555555555555"
	for typeName, config := range map[string]string{
		deviceType:   adopted(lockA, `name = "Porch"`),
		acsUserType:  acsUser(keeper, `full_name = "Jane Doe"`),
		identityType: userIdentity(`full_name = "Jane Doe"`),
	} {
		t.Run(typeName, func(t *testing.T) {
			f := startFakeLocks(t)
			config := f.config(config)
			refusal := says("belongs to workspace "+stranger, "the resource was in workspace "+fakeWorkspace,
				"Nothing is removed from the state")
			devices, users, identities := []map[string]any{}, fakeRecords{}, fakeRecords{}
			swap := func(workspace string) func() {
				return func() {
					f.do(func() {
						f.workspace = workspace
						devices, f.devices = f.devices, devices
						users, f.acsUsers = f.acsUsers, users
						identities, f.identities = f.identities, identities
					})
				}
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: config},
				{Config: config, ConfigPlanChecks: plansNothing()},
				{PreConfig: swap(stranger), Config: config, ExpectError: refusal},
				{Config: config, Destroy: true, ExpectError: refusal},
				{PreConfig: swap(fakeWorkspace), Config: config, ConfigPlanChecks: plansNothing()},
			}})
		})
	}
}

// Once the server has accepted a user, nothing that the apply then learns taints it.
func TestAcceptedUserOfAnAccessSystemIsNotTainted(t *testing.T) {
	for name, failure := range map[string]http.HandlerFunc{
		"the key is revoked":      answerError(http.StatusUnauthorized, "unauthorized", "API Key not found"),
		"the user is not visible": answerError(http.StatusNotFound, "acs_user_not_found", "There is no such user"),
		"the server lacks it":     answerRaw(http.StatusNotImplemented, "text/plain", ""),
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.then("/acs/users/get", failure)
			config := f.config(acsUser(keeper, `full_name = "Jane Doe"`))
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: config},
				{Config: config, ConfigPlanChecks: plansNothing()},
			}})
		})
	}
}
