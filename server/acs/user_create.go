package acs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewSchedule is a requested schedule, with times in the format of the API.
type NewSchedule struct {
	StartsAt string // empty: now
	EndsAt   string // empty: never
}

// parse parses a schedule. It fails with Invalid unless the end is in the future and after the
// start.
func (n NewSchedule) parse(now time.Time) (starts, ends *time.Time, err error) {
	at := now.UTC().Truncate(time.Second) // many systems store whole seconds
	if n.StartsAt != "" {
		if at, err = domain.ParseTime("access_schedule.starts_at", n.StartsAt); err != nil {
			return nil, nil, err
		}
	}
	if n.EndsAt == "" {
		return &at, nil, nil
	}
	until, err := domain.ParseTime("access_schedule.ends_at", n.EndsAt)
	switch {
	case err != nil:
		return nil, nil, err
	case !until.After(at):
		return nil, nil, domain.Invalidf("access_schedule.ends_at", "Must be after starts_at")
	case !until.After(now):
		return nil, nil, domain.Invalidf("access_schedule.ends_at", "Must be in the future")
	}
	return &at, &until, nil
}

// NewUser is the specification of a new user. Empty fields stay unset.
type NewUser struct {
	SystemID, FullName, Email, Phone string
	Schedule                         *NewSchedule // nil: no time limit
	GroupIDs                         []string
	IdentityID                       string
}

// CreateUser starts the creation of a user on a system and does not wait for it. It fails with
// NotFound for the system, a group, or the identity; with Invalid; and with Conflict if the person
// has a user on the system already.
func (s *Service) CreateUser(ctx context.Context, p domain.Principal, n NewUser) (User, error) {
	if err := checkNumber(n.Phone); err != nil {
		return User{}, err
	}
	var out User
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		var row userRow
		arg := dbsqlc.InsertAcsUserParams{
			FullName:     n.FullName,
			EmailAddress: nonEmpty(n.Email),
			PhoneNumber:  nonEmpty(n.Phone),
			GroupRefs:    []string{},
			EntranceRefs: []string{},
		}
		// Lock the identity before its systems, like DeleteIdentity.
		if n.IdentityID != "" {
			i, err := findIdentity(ctx, tx.Queries, p, n.IdentityID, "")
			if err == nil {
				err = holdIdentity(ctx, tx, i)
			}
			if err != nil {
				return err
			}
			arg.UserIdentityID = &i.UserIdentityID
			row.IdentityFullName, row.IdentityEmailAddress, row.IdentityPhoneNumber = i.FullName, i.EmailAddress, i.PhoneNumber
		}
		system, err := lockSystem(ctx, tx, p.WorkspaceID, n.SystemID)
		if err != nil {
			return err
		}
		row.ConnectedAccountID = system.ConnectedAccountID
		if n.Schedule != nil {
			if arg.StartsAt, arg.EndsAt, err = n.Schedule.parse(s.devices.Now()); err != nil {
				return err
			}
		}
		if arg.GroupRefs, err = groupsOn(ctx, tx, system, n.GroupIDs); err != nil {
			return err
		}
		if row.AcsUser, err = s.insertUser(ctx, tx, system, arg); err != nil {
			return err
		}
		out, err = s.toUser(ctx, row)
		return err
	})
	return out, onSystemAlready(err, n.IdentityID)
}

func checkNumber(number string) error {
	if number == "" {
		return nil
	}
	if err := CheckPhone(number); err != nil {
		return err
	}
	return nil
}

// insertUser inserts a user. The caller must hold the system's lock.
func (s *Service) insertUser(
	ctx context.Context,
	tx store.Tx,
	system dbsqlc.AcsSystem,
	arg dbsqlc.InsertAcsUserParams,
) (dbsqlc.AcsUser, error) {
	arg.AcsUserID, arg.IsManaged = domain.NewID(), true
	arg.WorkspaceID, arg.AcsSystemID = system.WorkspaceID, system.AcsSystemID
	r, err := tx.InsertAcsUser(ctx, arg)
	if err != nil {
		return r, err
	}
	if err := s.emitUser(ctx, tx, "acs_user.created", system, r); err != nil {
		return r, err
	}
	tx.Begins()
	return r, s.wake(ctx, tx, system.AcsSystemID)
}

func (s *Service) emitUser(
	ctx context.Context,
	tx store.Tx,
	event string,
	system dbsqlc.AcsSystem,
	u dbsqlc.AcsUser,
) error {
	fields := map[string]any{"acs_system_id": system.AcsSystemID, "acs_user_id": u.AcsUserID}
	if u.UserIdentityID != nil {
		fields["user_identity_id"] = *u.UserIdentityID
	}
	return s.events.EmitFields(ctx, tx, event, system.WorkspaceID, system.ConnectedAccountID, fields)
}

// groupOn returns the group of a system that acs_access_group_id names. It fails with NotFound, and
// with Invalid for a group of another system.
func groupOn(
	ctx context.Context,
	tx store.Tx,
	p domain.Principal,
	system dbsqlc.AcsSystem,
	id string,
) (dbsqlc.AcsAccessGroup, error) {
	g, err := getGroup(ctx, tx.Queries, p, id)
	if err == nil && g.AcsAccessGroup.AcsSystemID != system.AcsSystemID {
		err = domain.Invalidf("acs_access_group_id", "The access group belongs to another access system")
	}
	return g.AcsAccessGroup, err
}

// groupsOn returns the deduplicated references of the groups in acs_access_group_ids. It fails like
// groupOn.
func groupsOn(ctx context.Context, tx store.Tx, system dbsqlc.AcsSystem, ids []string) ([]string, error) {
	parsed, seen := make([]uuid.UUID, len(ids)), map[uuid.UUID]bool{}
	for i, id := range ids {
		var err error
		if parsed[i], err = uuid.Parse(id); err != nil {
			return nil, groupNotFound(id)
		}
	}
	refs := []string{}
	if len(ids) == 0 {
		return refs, nil
	}
	rows, err := tx.FindAcsAccessGroups(ctx,
		dbsqlc.FindAcsAccessGroupsParams{WorkspaceID: system.WorkspaceID, AcsAccessGroupIds: parsed})
	if err != nil {
		return nil, fmt.Errorf("read the access groups: %w", err)
	}
	found := make(map[uuid.UUID]dbsqlc.FindAcsAccessGroupsRow, len(rows))
	for _, r := range rows {
		found[r.AcsAccessGroupID] = r
	}
	for i, id := range parsed {
		g, ok := found[id]
		switch {
		case !ok:
			return nil, groupNotFound(ids[i])
		case g.AcsSystemID != system.AcsSystemID:
			return nil, domain.Invalidf("acs_access_group_ids."+strconv.Itoa(i),
				"The access group belongs to another access system")
		case !seen[id]:
			seen[id], refs = true, append(refs, g.VendorRef)
		}
	}
	return refs, nil
}

// onSystemAlready converts the unique violation of a person's second user on a system to an error
// that says what to do.
func onSystemAlready(err error, identity string) error {
	if store.Violates(err, "acs_users_identity") {
		return &domain.Error{
			Kind: domain.Conflict,
			Type: "acs_user_already_exists",
			Data: map[string]any{"user_identity_id": identity},
			Message: "The person already has a user on this access system. " +
				"Update that user, or remove it from the person first with /user_identities/remove_acs_user.",
		}
	}
	if _, known := asError(err); err != nil && !known {
		return fmt.Errorf("write the user: %w", err)
	}
	return err
}
