package zwavejs

import (
	"encoding/json"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Types of credentials: zwave-js UserCredentialType.
const (
	credentialPassword = 2
	credentialRFID     = 3
	credentialNFC      = 5
	credentialDESFire  = 12
)

// used returns the method and the code of an operation at a lock with User Credential. It decodes the "Credential
// Usage Data" of a notification, which zwave-js passes on as bytes: the user (two), the number of credentials (one),
// and for each credential its type (one) and slot (two) (CREDENTIAL_USAGE_DATA_MAX_SIZE of Silicon Labs'
// CC_UserCredential.c). A PIN takes precedence over other credentials. The code is empty if unknown.
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
