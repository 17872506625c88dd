package access

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// toCodeWithErrors is toCode with the details of the conflicting codes in the errors.
func (s *Service) toCodeWithErrors(ctx context.Context, r dbsqlc.AccessCode, d dbsqlc.CodeDevice) (Code, error) {
	codes, err := s.toCodesWithErrors(ctx, []dbsqlc.ListAccessCodesOfDeviceRow{{AccessCode: r, CodeDevice: d}})
	if err != nil {
		return Code{}, err
	}
	return codes[0], nil
}

// toCodesWithErrors is toCodeWithErrors for codes of one workspace.
func (s *Service) toCodesWithErrors(ctx context.Context, rows []dbsqlc.ListAccessCodesOfDeviceRow) ([]Code, error) {
	out := make([]Code, len(rows))
	var others []uuid.UUID
	for i, r := range rows {
		c, err := s.toCode(r.AccessCode, r.CodeDevice)
		if err != nil {
			return nil, err
		}
		if out[i] = c; r.AccessCode.ErrorCodeID != nil {
			others = append(others, *r.AccessCode.ErrorCodeID)
		}
	}
	if others == nil {
		return out, nil
	}
	found, err := s.db.CodesInTheWay(ctx, dbsqlc.CodesInTheWayParams{
		WorkspaceID:   out[0].WorkspaceID,
		AccessCodeIds: others,
	})
	if err != nil {
		return nil, fmt.Errorf("read the conflicting codes: %w", err)
	}
	managed := make(map[uuid.UUID]bool, len(found))
	for _, r := range found {
		managed[r.AccessCodeID] = r.IsManaged
	}
	for _, c := range out {
		for i, p := range c.Errors {
			is, there := managed[p.Other]
			// A conflicting code that has been deleted has no identifier to show.
			if c.Errors[i].Managed = is; !there {
				c.Errors[i].Other = uuid.Nil
			}
		}
	}
	return out, nil
}
