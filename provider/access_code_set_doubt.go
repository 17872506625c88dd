package provider

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// A creation that was not answered may have put the code on its lock, where it opens the door under an identifier that nobody knows. The set
// keeps in mind which locks that goes for, and looks there before it creates another code or lets go of the lock. It does not look on
// other locks: a code of the same name and PIN is somebody else's there.

// locksInDoubtKey is where the private state of a set keeps them.
const locksInDoubtKey = "locks_in_doubt"

func rememberDoubts(ctx context.Context, private privateState, results map[string]done) diag.Diagnostics {
	locks := []string{}
	for _, deviceID := range slices.Sorted(maps.Keys(results)) {
		if results[deviceID].inDoubt && !results[deviceID].gone {
			locks = append(locks, deviceID)
		}
	}
	encoded, _ := json.Marshal(locks) // strings always encode
	return private.SetKey(ctx, locksInDoubtKey, encoded)
}

func locksInDoubt(ctx context.Context, private privateState, diags *diag.Diagnostics) (locks []string) {
	stored, problems := private.GetKey(ctx, locksInDoubtKey)
	diags.Append(problems...)
	_ = json.Unmarshal(stored, &locks) // none, where nothing was stored
	return locks
}

// find takes the codes on locks in doubt into those of the set, as far as they are there. It answers what became of the work on
// those where they are not, or where it could not look: then nothing may be done.
func (m *accessCodeSetModel) find(ctx context.Context, client *api.Client, codes map[string]lockCode, locks []string) map[string]done {
	locks = slices.DeleteFunc(locks, func(deviceID string) bool {
		code, known := codes[deviceID]
		return !known || !code.AccessCodeID.IsNull()
	})
	type found struct {
		code *api.AccessCode
		err  error
	}
	unsettled := map[string]done{}
	for deviceID, found := range onEach(locks, func(deviceID string) (f found) {
		f.code, f.err = m.lost(ctx, client, deviceID)
		return f
	}) {
		code := codes[deviceID]
		if found.code == nil {
			unsettled[deviceID] = done{code: code, err: untried(found.err), inDoubt: true}
			continue
		}
		code.AccessCodeID = types.StringValue(found.code.AccessCodeID)
		codes[deviceID] = code
	}
	return unsettled
}

// lost finds the code of a creation that was not answered. Without it every further attempt would be refused, because the PIN is
// taken, or make a second one.
func (m *accessCodeSetModel) lost(ctx context.Context, client *api.Client, deviceID string) (*api.AccessCode, error) {
	codes, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	for i, code := range codes {
		if code.Code != nil && *code.Code == m.pin() && code.Name != nil && *code.Name == m.Name.ValueString() {
			return &codes[i], nil
		}
	}
	return nil, nil
}

// warnOfLost says of a lock that is let go of that a code which was not found may be on it.
func (m *accessCodeSetModel) warnOfLost(ctx context.Context, client *api.Client, diags *diag.Diagnostics, deviceID string) {
	warnAt(diags, path.Root("device_ids"), "An access code may be left on a lock", sentence(lockName(ctx, client, deviceID)+
		": a creation of the code was not answered, and there is none of this name and PIN on the lock now")+
		"\n\nWhere the server does not tell PINs, look there for a code of this name, and delete it.")
}
