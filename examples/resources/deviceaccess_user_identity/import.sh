terraform import deviceaccess_user_identity.jane 0190a5f2-6d3a-7f10-8b55-0c9e7d2a4b18
