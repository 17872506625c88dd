package device

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A large ring needs the index of PINs: without it, a ring of 200 codes takes 12 s.
func TestOneCodeOfALargeRingStepsAside(t *testing.T) {
	t.Parallel()
	keys, err := encryption.New(encryption.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	s, device := &Service{keys: keys}, uuid.New()
	tx := &deviceTx{s: s, d: dbsqlc.Device{DeviceID: device}, now: time.Now()}
	const all = 500
	pin := func(n int) string { return fmt.Sprint(1000 + n%all) }
	for n := range all {
		c := &dbsqlc.AccessCode{
			AccessCodeID: uuid.New(),
			DeviceID:     device,
			IsManaged:    true,
			DesiredGen:   2,
			AppliedGen:   1,
			VendorRef:    new(fmt.Sprint(n)),
		}
		has := pin(n)
		c.AppliedSealed = keys.Seal(appliedPlace(c.AccessCodeID), domain.MustJSON(codeState{PIN: &has}))
		s.setPIN(c, pin(n+1))
		tx.codes = append(tx.codes, c)
	}
	if aside := stepAside(tx); len(aside) != 1 {
		t.Errorf("%d step aside, want 1", len(aside))
	}
	for n, c := range tx.codes {
		if got := tx.holderOfPIN(c); got != tx.codes[(n+1)%all] {
			t.Fatalf("code %d waits for a code without its PIN", n)
		}
	}
	// A later change of a code breaks the ring.
	tx.codes[7].AppliedGen = 2
	s.setPIN(tx.codes[7], pin(7))
	if aside := stepAside(tx); len(aside) != 0 {
		t.Errorf("%d step aside without a ring", len(aside))
	}
	if tx.codes = tx.codes[:3]; tx.holderOfPIN(tx.codes[2]) != nil || tx.holderOfPIN(tx.codes[0]) != tx.codes[1] {
		t.Error("a code waits for a deleted one")
	}
}

func stepAside(tx *deviceTx) (aside []*dbsqlc.AccessCode) {
	for _, c := range tx.codes {
		if tx.yieldsPIN(c) {
			aside = append(aside, c)
		}
	}
	return aside
}
