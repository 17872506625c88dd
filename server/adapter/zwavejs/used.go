package zwavejs

import (
	"encoding/json"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Kinds of credentials: zwave-js UserCredentialType.
const (
	credentialPassword = 2
	credentialRFID     = 3
	credentialNFC      = 5
	credentialDESFire  = 12
)

// used is what was used at a lock of User Credential: the "Credential Usage Data" of a notification, which zwave-js passes on as
// the bytes that they are. These are the user in two, the number of credentials in one, and of each of those its kind in one and
// its slot in two (CREDENTIAL_USAGE_DATA_MAX_SIZE of Silicon Labs' CC_UserCredential.c). Where it was a PIN, among others, that
// counts; the code is empty where it is not known.
func (t notification) used() (method adapter.Method, code adapter.CodeRef) {
	var bytes struct {
		Data []uint8 `json:"data"`
	}
	method = adapter.ByUnknown
	if json.Unmarshal(t.Parameters, &bytes) != nil || len(bytes.Data) < 3 || len(bytes.Data) != 3+3*int(bytes.Data[2]) {
		return method, ""
	}
	for rest := bytes.Data[3:]; len(rest) > 0; rest = rest[3:] {
		switch slot := int(rest[1])<<8 | int(rest[2]); rest[0] {
		case credentialPIN:
			if slotIn(slot) {
				code = codeRef(slot)
			}
			return adapter.ByKeycode, code
		case credentialPassword:
			method = adapter.ByKeycode
		case credentialRFID, credentialNFC, credentialDESFire:
			method = adapter.ByCard
		}
	}
	return method, ""
}
