package provider

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

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

// doubt is a creation that was not answered.
type doubt struct {
	WrittenOnly bool `json:"written_only"` // the PIN, which nothing has kept then

	likely []string // codes on the lock that may have been made by it: nobody can tell
}

// doubtOf is the doubt about a creation of a code of this set.
func (m *accessCodeSetModel) doubtOf() *doubt { return &doubt{WrittenOnly: m.writesOnly()} }

// pin is the PIN to look for. Where that was written only, it is the one of the configuration, which may be another by now; "" where there is none.
func (d *doubt) pin(state, config *accessCodeSetModel) string {
	if d.WrittenOnly {
		return config.pin()
	}
	return state.Code.ValueString()
}

func rememberDoubts(ctx context.Context, private privateState, results map[string]done) diag.Diagnostics {
	doubts := map[string]*doubt{}
	for deviceID, result := range results {
		if result.doubt != nil {
			doubts[deviceID] = result.doubt
		}
	}
	encoded, _ := json.Marshal(doubts) // truth values always encode
	return private.SetKey(ctx, locksInDoubtKey, encoded)
}

// doubts are those that are kept in mind, by lock. Earlier versions of the provider have kept the locks alone.
func (m *accessCodeSetModel) doubts(ctx context.Context, private privateState, diags *diag.Diagnostics) (doubts map[string]*doubt) {
	stored, problems := private.GetKey(ctx, locksInDoubtKey)
	diags.Append(problems...)
	var locks []string
	if json.Unmarshal(stored, &locks) == nil {
		doubts = map[string]*doubt{}
		for _, deviceID := range locks {
			doubts[deviceID] = m.doubtOf()
		}
		return doubts
	}
	_ = json.Unmarshal(stored, &doubts) // none, where nothing was stored
	return doubts
}

// find takes the codes on locks in doubt into those of the set, as far as they are there. It answers what became of the work on
// those where they are not, or where it could not look: then nothing may be done.
func (m *accessCodeSetModel) find(ctx context.Context, client *api.Client, codes map[string]lockCode, doubts map[string]*doubt, config *accessCodeSetModel) map[string]done {
	locks := slices.DeleteFunc(slices.Collect(maps.Keys(doubts)), func(deviceID string) bool {
		code, known := codes[deviceID]
		return !known || !code.AccessCodeID.IsNull()
	})
	type found struct {
		code   *api.AccessCode
		likely []string
		err    error
	}
	unsettled := map[string]done{}
	for deviceID, found := range onEach(locks, func(deviceID string) (f found) {
		f.code, f.likely, f.err = m.lost(ctx, client, deviceID, doubts[deviceID], config)
		return f
	}) {
		code := codes[deviceID]
		if found.code == nil {
			doubt := doubts[deviceID]
			doubt.likely = found.likely
			unsettled[deviceID] = done{code: code, err: untried(found.err), doubt: doubt}
			continue
		}
		code.AccessCodeID = types.StringValue(found.code.AccessCodeID)
		codes[deviceID] = code
	}
	return unsettled
}

// lost finds the code of a creation that was not answered. Without it every further attempt would be refused, because the PIN is
// taken, or make a second one. Where there is none of its name and PIN, it answers the codes of its name that may be it all the same: the
// server does not tell their PINs, or the one of the creation is not known.
func (m *accessCodeSetModel) lost(ctx context.Context, client *api.Client, deviceID string, doubt *doubt, config *accessCodeSetModel) (found *api.AccessCode, likely []string, err error) {
	codes, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, nil, err
	}
	pin := doubt.pin(m, config)
	for i, code := range codes {
		switch {
		case code.Name == nil || *code.Name != m.Name.ValueString():
		case pin != "" && code.Code != nil && *code.Code == pin:
			return &codes[i], nil, nil
		case doubt.WrittenOnly || pin == "" || code.Code == nil:
			likely = append(likely, code.AccessCodeID)
		}
	}
	return nil, likely, nil
}

// isSoughtOtherwise says whether the code of a lost creation could not be looked for any more by the name and the PIN that the state would have then.
func (m *accessCodeSetModel) isSoughtOtherwise(state *accessCodeSetModel) bool {
	return !m.Name.Equal(state.Name) || !m.Code.Equal(state.Code) || !m.CodeWOVersion.Equal(state.CodeWOVersion)
}

// refuseUnsought reports the locks on which it could not be looked for the code of a creation, and says whether there are any.
func (m *accessCodeSetModel) refuseUnsought(ctx context.Context, client *api.Client, unsettled map[string]done, diags *diag.Diagnostics) (refused bool) {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	for _, deviceID := range slices.Sorted(maps.Keys(unsettled)) {
		err := unsettled[deviceID].err
		if err == nil {
			continue
		}
		refused = true
		refuseAt(diags, path.Root("access_codes").AtMapKey(deviceID), actionPut, m.hide(sentence(lockName(ctx, client, deviceID)+": "+err.Error()))+"\n\n"+
			joined(nextStep(err), "Nothing of the set was changed: a creation of its code on this lock was not answered, and the code is found by the name and the PIN that it has. "+
				"Run Terraform again: it looks there first."))
	}
	return refused
}

// warnOfLost says of a lock that a code which was not found may be on it, where it is let go of or gets another one.
func (m *accessCodeSetModel) warnOfLost(ctx context.Context, client *api.Client, diags *diag.Diagnostics, deviceID string, result done) {
	said, next := "there is none of this name and PIN on the lock now", "Where the server does not tell PINs, look there for a code of this name, and delete it."
	switch likely := result.left.likely; {
	case len(likely) > 0:
		said = "without its PIN it cannot be told whether it made what is there of this name: " + strings.Join(likely, ", ")
		next = "Look there whether somebody needs that code besides this set. If not, delete it: it may open the door."
	case !result.gone:
		return
	}
	warnAt(diags, path.Root("device_ids"), "An access code may be left on a lock", sentence(lockName(ctx, client, deviceID)+
		": a creation of the code was not answered, and "+said)+"\n\n"+next)
}
