package lockstate

import (
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// refresh copies the observed state of an unmanaged code into its row.
func (r *reading) refresh(c *Code, f Found) {
	if c.RemovingSince == nil {
		c.Status = StatusSet
	}
	if c.PIN != f.PIN {
		c.setPIN(f.PIN)
		r.deviceChanged = true
	}
	if domain.Value(c.Name) != f.Name {
		c.Name = domain.NonEmpty(f.Name)
	}
	if !sameTime(c.StartsAt, f.StartsAt) || !sameTime(c.EndsAt, f.EndsAt) {
		c.StartsAt, c.EndsAt = f.StartsAt, f.EndsAt
	}
}

// adoptUnmanaged adds an unknown code as an unmanaged one. A late arrival of a deleted code is added, too, and removed.
func (r *reading) adoptUnmanaged(f Found) {
	if r.reclaimPoolCode(f) {
		return
	}
	c := &Code{
		ID:                     r.Sources.NewID(),
		Name:                   domain.NonEmpty(f.Name),
		PIN:                    f.PIN,
		StartsAt:               f.StartsAt,
		EndsAt:                 f.EndsAt,
		Status:                 StatusSet,
		PreferNativeScheduling: true,
		Ref:                    f.Ref,
		DesiredGen:             1,
		DesiredAt:              r.Now,
	}
	r.setDisabled(c, f.Disabled)
	if r.Tombstones[f.Key] && !f.KeyGuessed {
		c.RemovingSince, c.Status = new(r.Now), StatusRemoving
	}
	r.show(c)
	r.others = append(r.others, c)
}

// show adds an observed code to those of the device.
func (r *reading) show(c *Code) {
	r.Codes, r.byRef[c.Ref], r.seen[c.ID] = append(r.Codes, c), c, true
}

// insertUnmanaged adds the codes that adoptUnmanaged found, up to the inventory rate limit of the account.
func (r *reading) insertUnmanaged() {
	if room := r.Sources.Admit(len(r.others)); room < len(r.others) {
		later := map[*Code]bool{}
		for _, c := range r.others[room:] {
			later[c] = true
		}
		r.Codes = slices.DeleteFunc(slices.Clone(r.Codes), func(c *Code) bool { return later[c] })
		r.others, r.deferred = r.others[:room], r.deferred+len(later)
	}
	for _, c := range r.others {
		r.changes.Added = append(r.changes.Added, c)
		r.emit(Event{Type: "access_code.unmanaged.created"}, c)
	}
}

// removeUnmanaged deletes the unmanaged codes that the device did not show. onMissing handles those that an attempt, a
// managed code, or a removal waits for.
func (r *reading) removeUnmanaged() {
	awaited := map[uuid.UUID]bool{}
	for _, a := range r.Attempts {
		awaited[a.CodeID] = true
	}
	for _, c := range r.Codes {
		awaited[c.PulledBackup] = true
		// Other codes wait for a removal even after its attempt has ended.
		if c.RemovingSince != nil {
			awaited[c.ID] = true
		}
	}
	var departed []*Code
	for _, c := range r.Codes {
		if !c.Managed && !c.IsBackup && c.Offline == "" && !r.seen[c.ID] && !awaited[c.ID] {
			departed = append(departed, c)
		}
	}
	// The device has room, whatever the rate limit lets through.
	r.deviceChanged = r.deviceChanged || len(departed) > 0
	room := r.Sources.Admit(len(departed))
	r.deferred += len(departed) - room
	for _, c := range departed[room:] {
		r.seen[c.ID] = true // counts as present until there is budget
	}
	gone := map[*Code]bool{}
	for _, c := range departed[:room] {
		gone[c] = true
		r.changes.Deleted = append(r.changes.Deleted, c.ID)
		r.emit(Event{Type: "access_code.unmanaged.removed"}, c)
	}
	r.Codes = slices.DeleteFunc(slices.Clone(r.Codes), func(c *Code) bool { return gone[c] })
}

// reclaimPoolCode removes a code that was in the backup pool of a deleted device: of this one, before it came back as a
// new device. It recognizes the code by its identifier if the vendor keeps that, else by its reference, name, and PIN.
func (r *reading) reclaimPoolCode(f Found) bool {
	for i, was := range r.Abandoned {
		if was.ID != f.Key &&
			(was.Ref != f.Ref || was.State().vendorName() != f.Name || f.PIN == "" || was.PIN != f.PIN) {
			continue
		}
		r.Abandoned = slices.Delete(slices.Clone(r.Abandoned), i, i+1)
		c := &Code{
			ID:                     r.Sources.NewID(),
			Managed:                true,
			Name:                   was.Name,
			PIN:                    was.PIN,
			Status:                 StatusSet,
			PreferNativeScheduling: true,
			Ref:                    f.Ref,
			DesiredGen:             1,
			DesiredAt:              r.Now,
			IsBackup:               true,
			InPool:                 true,
		}
		r.changes.Deleted, r.changes.Added = append(r.changes.Deleted, was.ID), append(r.changes.Added, c)
		r.show(c)
		r.managed = append(r.managed, c)
		r.expire(c)
		return true
	}
	return false
}
