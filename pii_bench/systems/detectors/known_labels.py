"""The label sets that are met most, each mapped to the seven types.

A label goes to the type that has its category (taxonomy.py). One that marks no category
of ours, or a mixture, goes to None: what it marks is dropped.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.systems.detectors.label_map import LabelMap
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping


def _types(dropped: str = "", /, **labels: str) -> Mapping[str, PiiType | None]:
    """Lists of labels by type, turned round."""
    types: dict[str, PiiType | None] = dict.fromkeys(dropped.split())
    for name, listed in labels.items():
        types |= dict.fromkeys(listed.split(), PiiType[name])
    return MappingProxyType(types)


CONLL: Final = _types(
    # Nationalities, events and works in one.
    "MISC",
    PER="PER",
    LOC="LOC",
    ORG="ORG",
)
"""CoNLL-2003, Sang and De Meulder (2003)."""

ONTONOTES: Final = _types(
    # A bare number is an age, a code or nothing.
    "CARDINAL ORDINAL EVENT LANGUAGE LAW PRODUCT WORK_OF_ART",
    PER="PERSON",
    LOC="GPE LOC FAC",
    ORG="ORG",
    # Nationalities and religious or political groups; measures, of which ours are
    # a person's height and weight.
    DEM="NORP QUANTITY",
    DATETIME="DATE TIME",
    QUANTITY="MONEY PERCENT",
)
"""OntoNotes 5, as spaCy's models for English name it."""

AI4PRIVACY: Final = _types(
    # Parts of a name that are not of its minimal span; kinds of things.
    "PREFIX TITLE ACCOUNTNAME CREDITCARDISSUER CARDISSUER CURRENCY CURRENCYNAME "
    "ORDINALDIRECTION URL USERAGENT",
    PER="FIRSTNAME MIDDLENAME LASTNAME LASTNAME1 LASTNAME2 LASTNAME3 GIVENNAME GIVENNAME1 "
    "GIVENNAME2 SURNAME USERNAME",
    CODE="EMAIL PHONENUMBER TELEPHONENUM TEL PHONEIMEI SSN SOCIALNUM SOCIALNUMBER "
    "CREDITCARDNUMBER CREDITCARDCVV ACCOUNTNUMBER ACCOUNTNUM IBAN BIC BITCOINADDRESS "
    "ETHEREUMADDRESS LITECOINADDRESS MAC IP IPV4 IPV6 PASSWORD PASS PIN MASKEDNUMBER "
    "VEHICLEVIN VEHICLEVRM IDCARD IDCARDNUM PASSPORT PASSPORTNUM DRIVERLICENSE "
    "DRIVERLICENSENUM TAXNUM",
    LOC="BUILDING BUILDINGNUM BUILDINGNUMBER STREET SECONDARYADDRESS SECADDRESS CITY COUNTY "
    "STATE COUNTRY ZIPCODE POSTCODE NEARBYGPSCOORDINATE GEOCOORD",
    ORG="COMPANYNAME",
    DEM="AGE SEX GENDER HEIGHT EYECOLOR JOBTITLE JOBTYPE JOBAREA",
    DATETIME="DATE TIME DOB BOD DATEOFBIRTH",
    QUANTITY="AMOUNT CURRENCYSYMBOL CURRENCYCODE",
)
"""AI4Privacy's releases of 200,000, 300,000 and 500,000 texts, whose names differ."""

DATAFOG: Final = _types(
    "URL GENETIC_DATA CRIMINAL_RECORD",
    PER="PERSON USERNAME",
    CODE="SSN CREDIT_CARD BANK_ACCOUNT PASSPORT_NUMBER DRIVERS_LICENSE TAX_ID EMAIL PHONE "
    "IP_ADDRESS LICENSE_PLATE MEDICAL_RECORD EMPLOYEE_ID STUDENT_ID ACCOUNT_NUMBER PIN PASSWORD "
    "BIOMETRIC VEHICLE_ID DEVICE_ID CRYPTO_WALLET IBAN SWIFT_CODE INSURANCE_NUMBER",
    LOC="STREET_ADDRESS LOCATION",
    ORG="ORGANIZATION TRADE_UNION",
    DEM="AGE NATIONALITY GENDER ETHNICITY RELIGION MARITAL_STATUS POLITICAL_AFFILIATION "
    "SEXUAL_ORIENTATION HEALTH_CONDITION",
    DATETIME="DATE DATE_OF_BIRTH",
    QUANTITY="SALARY",
)
"""DataFog's PII-NER v1 (repository DataFog/datafog-labs, label_schema.py)."""

PRESIDIO: Final = LabelMap(
    "Presidio",
    _types(
        "URL",
        PER="PERSON",
        CODE="CREDIT_CARD CRYPTO EMAIL EMAIL_ADDRESS IBAN_CODE ID IP_ADDRESS MAC_ADDRESS "
        "MEDICAL_LICENSE PHONE_NUMBER UUID ABA_ROUTING_NUMBER AU_ABN AU_ACN AU_MEDICARE AU_TFN "
        "CA_SIN DE_BSNR DE_FUEHRERSCHEIN DE_HANDELSREGISTER DE_HEALTH_INSURANCE DE_ID_CARD "
        "DE_KFZ DE_LANR DE_PASSPORT DE_SOCIAL_SECURITY DE_TAX_ID DE_TAX_NUMBER DE_VAT_ID ES_NIE "
        "ES_NIF ES_PASSPORT FI_PERSONAL_IDENTITY_CODE IN_AADHAAR IN_GSTIN IN_PAN IN_PASSPORT "
        "IN_VEHICLE_REGISTRATION IN_VOTER IT_DRIVER_LICENSE IT_FISCAL_CODE IT_IDENTITY_CARD "
        "IT_PASSPORT IT_VAT_CODE KR_BRN KR_DRIVER_LICENSE KR_FRN KR_PASSPORT KR_RRN NG_NIN "
        "NG_VEHICLE_REGISTRATION PH_PASSPORT PH_TIN PH_UMID PL_PESEL SE_ORGANISATIONSNUMMER "
        "SE_PERSONNUMMER SG_NRIC_FIN SG_UEN TH_TNIN TR_LICENSE_PLATE TR_NATIONAL_ID "
        "UK_DRIVING_LICENCE UK_NHS UK_NINO UK_PASSPORT UK_VEHICLE_REGISTRATION US_BANK_NUMBER "
        "US_CLAIM_NUMBER US_DRIVER_LICENSE US_HEALTH_INSURANCE_MEMBER_ID US_ITIN US_MBI US_NPI "
        "US_PASSPORT US_PRESCRIPTION_NUMBER US_PRIOR_AUTHORIZATION_NUMBER US_PROVIDER_TAX_ID "
        "US_REFERRAL_NUMBER US_SSN ZA_COMPANY_REGISTRATION ZA_DRIVER_LICENSE ZA_ID_NUMBER "
        "ZA_INCOME_TAX_NUMBER ZA_LICENSE_PLATE ZA_MOBILE_NUMBER ZA_PASSPORT ZA_TELEPHONE_NUMBER "
        "ZA_TRAFFIC_REGISTER_NUMBER ZA_VAT_NUMBER",
        LOC="LOCATION CA_POSTAL_CODE DE_PLZ UK_POSTCODE",
        ORG="ORGANIZATION",
        # NRP: nationality, religious or political group.
        DEM="AGE NRP",
        DATETIME="DATE_TIME",
    ),
)
"""Every entity that a recognizer of presidio-analyzer 2.2.366 declares, enabled or not."""

SPACY: Final = LabelMap("spaCy", ONTONOTES)

HUGGING_FACE: Final = LabelMap(
    "Hugging Face", MappingProxyType({**CONLL, **ONTONOTES, **AI4PRIVACY, **DATAFOG})
)
"""The label sets above as one; where two have a label, they agree on its type."""
