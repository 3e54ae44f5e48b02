-- Local item suggestion: who sells in some states in category 10.
-- NEXMark joins for ever; here people and auctions count for 5 minutes.
SELECT P.name, P.city, P.state, A.id
FROM auction [RANGE 5 MINUTES] AS A
INNER JOIN person [RANGE 5 MINUTES] AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')
