package acs

import (
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// pending returns the changes of a user that its system has not applied yet. groups maps vendor
// references to groups.
func pending(r dbsqlc.AcsUser, groups map[string]uuid.UUID) (out []PendingChange) {
	has, wants := applied(r), desired(r)
	if r.DeletingAt != nil {
		return []PendingChange{
			{Code: "deleting", Message: "The user is being deleted from the access system.", At: *r.DeletingAt},
		}
	}
	if has == nil {
		// The user stays deleted until it is changed.
		if r.ErrorCode != nil && *r.ErrorCode == deletedExternally {
			return nil
		}
		return []PendingChange{
			{Code: "creating", Message: "The user is being created on the access system.", At: r.ChangedAt},
		}
	}
	change := func(code, message string, from, to map[string]any) {
		out = append(out, PendingChange{
			Code:    code,
			Message: message,
			At:      r.ChangedAt,
			From:    from,
			To:      to,
		})
	}
	if !has.sameInformation(wants) {
		change("updating_user_information", "The user's information is being updated on the access system.",
			has.information(), wants.information())
	}
	if !has.sameSchedule(wants) {
		change("updating_access_schedule", "The user's access schedule is being updated on the access system.",
			has.schedule(), wants.schedule())
	}
	if has.Suspended != wants.Suspended {
		change("updating_suspension_state", "The user is being suspended or unsuspended on the access system.",
			map[string]any{"is_suspended": has.Suspended}, map[string]any{"is_suspended": wants.Suspended})
	}
	in, into := refsIn(has.Groups), refsIn(wants.Groups)
	for _, left := range has.Groups {
		if !into[left] {
			change("updating_group_membership", "The user is being removed from an access group.",
				membership(groups[left]), membership(uuid.Nil))
		}
	}
	for _, joined := range wants.Groups {
		if !in[joined] {
			change("updating_group_membership", "The user is being added to an access group.", membership(uuid.Nil),
				membership(groups[joined]))
		}
	}
	// The API has no code for entrances. A grant counts as membership in a group without an identifier.
	in, into = refsIn(has.Entrances), refsIn(wants.Entrances)
	for _, left := range has.Entrances {
		if !into[left] {
			change("updating_group_membership", "The user is losing access to an entrance.",
				membership(uuid.Nil), membership(uuid.Nil))
		}
	}
	for _, joined := range wants.Entrances {
		if !in[joined] {
			change("updating_group_membership", "The user is being given access to an entrance.",
				membership(uuid.Nil), membership(uuid.Nil))
		}
	}
	// A change that was taken back may already be on its way to the system.
	if len(out) == 0 && r.WrittenGen != r.DesiredGen {
		change("updating_user_information", "The server is checking that the access system has the last change.",
			has.information(), wants.information())
	}
	return out
}

func (p Profile) information() map[string]any {
	return map[string]any{
		"full_name":     nonEmpty(p.FullName),
		"email_address": nonEmpty(p.Email),
		"phone_number":  nonEmpty(p.Phone),
	}
}

func (p Profile) schedule() map[string]any {
	return map[string]any{"starts_at": p.StartsAt, "ends_at": p.EndsAt}
}

// membership describes the membership in a group, or with the zero identifier in none. The
// identifier of a removed group is unknown.
func membership(group uuid.UUID) map[string]any {
	if group == uuid.Nil {
		return map[string]any{"acs_access_group_id": nil}
	}
	return map[string]any{"acs_access_group_id": group}
}
