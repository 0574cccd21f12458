"""People named in free texts, their phone numbers, and similar texts that are not people."""

import time
from collections.abc import Callable

import pytest

from sankofa.model.ocds.redaction import CUT, Secrets
from tests.depth import deep_after
from tests.every import every
from tests.torture import rounds

WITH_PERSONS = """
Contact person: {Themba Khoza}; cell {0825551234}
Evaluation by Dr {A. Pillay}
Enquiries: {Sipho Zulu}, Tel: {011 555 0000}.
Enquiries: {S. Zulu}
ENQUIRIES {SIPHO ZULU} TEL {011 555 0000}
ENQUIRIES: MR {S. NKOSI} TEL: {015 293 6000 / 6100}
Contact: {O'Brien}, {Patrick}
Contact {Sipho Zulu} or {Jane Doe} at {012-345 6789}
Enquiries: {S Zulu} / {T Khoza} Tel {0114567890}
Enquiries: Ms {Tsholofelo Pooe}/Mr {K Seane}
Contact persons: 1. {Sipho Zulu} 2. {Jane Doe}
Enquiries: Technical - {Sipho Zulu}; Admin - {Jane Doe}
Contact {Vusi Nkosi}, {Thabo Mbeki} or {Lindiwe Sisulu}.
For more information contact {Lerato Mofokeng} on {051 405 8000}.
Bid enquiries may be directed to {Nonhlanhla Mthembu}, cell: {073-555-1234}
For clarifications, contact the Procurement Officer, {Grace Wanjiru Kamau}, {0722000111}.
Queries to be emailed to {Andile Mokgoro} ({andile@dept.test})
Contact at Eskom: {Andile Mokgoro}
Compiled by {N van der Merwe}
Prepared by: {Jean-Pierre Habimana}
Attention Prof {Adebayo Ogunlesi}
Project Engineer: {Tendai Moyo}
c/o {Zebulon Vyver}, 1 Long Street
buyer contact: {sipho zulu} {0825551234}
mr {sipho zulu} will attend
Mrs {Dlamini} Director of Supply
Dr {Zodwa Mbatha} (Chairperson) and committee
Pour tout renseignement, contacter {M. Kouassi Yao} au {07 07 12 34 56}
Personne à contacter : Mme {Aïssatou Ndiaye}, tél. {+221 33 823 12 34}
Renseignements: Dr {Ousmane Sow} {(77 555 44 33)}
Pessoa de contacto: {João de Souza}, telemóvel {84 123 4567}
Contacto: Sr. {António dos Santos}, {+258 84 300 1234}
Para esclarecimentos contacte a Dra. {Isabel Neto} {(923 456 789)}
Elaborado por {Carlos Alberto Machava}
Wasiliana na Bw. {Juma Hamisi} kwa simu {0712 345 678}
Bi. {Asha Mwinyi} atapokea
Imeandaliwa na Mwl. {Neema Mushi}
للاتصال: {أحمد محمد علي} هاتف {٠١٠١٢٣٤٥٦٧٨}
يرجى الاتصال بالسيد {محمد الأمين} على الرقم {0912345678}
السيدة {فاطمة الزهراء بن علي}
Project manager - {Naledi Pandor}
Contact Mr\u00a0{Zulu} on {082\u2013555\u20131234}, tel:\u00a0{011\u00a0555\u00a00000}
Write to {somebody.else@example.org} or {a.b (at) c.co.za}
Correo: {juan.perez @ example.com} or {juan at example dot com}
Mtro. {Luis García}
Abg. {Pedro Benítez}
C.P. {Laura Hernández}
Servicios del C. {Juan Pérez López}
Pago a los CC. {Pedro Gómez y Juan Pérez}
Engº {Carlos Macuácua}
السيد/ {أحمد محمد}
The contact person is {Zodwa}.
Exma. Sra. {F. Macuácua} and Hon. Dr {Lindiwe Sisulu}
The report was requested by {A Hasani}. Project leader: {A. Avetisyan}
End-user: {C. Turunen}
SCM Official: {Nomvula P. Dlamini}
Kontakpersoon: {Annelie Fourie} of mnr. {P. Botha}, sel {082 555 1234}
Rig navrae aan {Pieter Botha}; Adv. {T. Masuku} en mev. {Du Plessis}
Imibuzo: {Bongani Cele}; xhumana noNksz. {T. Zungu}
Mnu. {Bongani Cele} noma Umnumzana {Sipho Zulu}
Dipatlisiso: Ntate {Lerato Mofokeng} kapa Mofumahadi {Lineo Mohapi}
Ikopanye le Rre {Kagiso Molefe} mo {0821234567}
Vho {Tshilidzi Mudau} na Mufumakadzi {Rudzani Netshitenzhe}
Tuntuɓi Malam {Musa Ibrahim} a {08031234567}
Ọgbẹni {Tunde Bakare}, Otunba {Gani Adewale} and Mazi {Chidi Okafor}
Barr. {Ifeoma Nnadi} and Surv. {Peter Eze}
La xiriir Mudane {Cabdi Warsame}, Marwo {Hodan Nuur}
አቶ {በቀለ ታደሰ} ስልክ {0911123456}
ወ/ሪት {አልማዝ ኃይሌ} እና ዶ/ር {አብይ መንግስቱ}
W/ro {Almaz Haile}
Hamagara Madamu {Claudine Uwase} kuri {0788123456}
Andriamatoa {Rakoto Andrianina} sy Ramatoa {Voahangy Rasoa}
Omukyala {Nakato Lubega}, Owek. {Joyce Ssebugwawo}
Bambo {Chisomo Phiri} ndi Mayi {Tamanda Banda}
Chef de projet : {Aminata Sow}
Delivery {84 123 4567} by noon
Cel: {(11) 95555-0192}, Telef. {(595-21) 555 019}, PBX: {2255 5019}
For further details contact {Nana Nyarkorkoaa}. Closing at 10h00.
Контактное лицо: {Айгуль Токтогулуева}, тел. {+996 312 55 01 92}
Контактна особа: {Шевченковець Марія Петрівна}; г-н {Асанбердиев} и г-жа {Н. Сатыбаева}
Відповідальний: {Іван Ткалеренчук}, пані {Оксана Мельник} та пан {Петренко}
Կոնտակտային անձ՝ {Արմեն Սարիկոսյան}, պրն {Գոռ Պողոսյան}
Persoana de contact: {Ion Rusu}, domnul {Vasile Ceban}
Teléfono (s): {(55) 5555-0192}; appeler le {77 555 01 92}; llamar al {987 555 019}
Avis: M. {Fatou Kouamelanou}
"""  # noqa: RUF001

STAYS = """
Mr Price Group Limited
Supply of goods to Mr Price Group Limited stores
Bogotá D.C.
Dr Kenneth Kaunda District Municipality: repair of roads
Upgrade of Dr Pixley Ka Seme Hospital
Prof. Z.K. Matthews building
St. Mary's Hospital and Sr Mary's clinic
Dr JS Moroka Local Municipality water reticulation
Dr AB Nzo Street and Prof Nkuhlu Avenue upgrade
Sir Seewoosagur Ramgoolam International Airport
Chief Albert Luthuli Municipality roads
Alhaji Aliko Dangote Foundation
Réhabilitation de la Rue du Dr Calmette
Hôpital Général Dr Denis Mukwege
Hôpital Principal Docteur Aristide Le Dantec
20 laptops @ R10.50 each, C.P. 06000 Ciudad de México, Sra. Directora
Escola Primária Dr. Agostinho Neto
Contact: Lycée Dr Kwame Nkrumah
Hon. Minister's Residence Refurbishment
Inkosi Langalibalele Local Municipality and Inkosi Albert Luthuli Hospital
Danadams Pharm. Ind. Gh. Ltd
Amai Musodzi Community Hall
Բ 0291729403
Contact: Emir Palace Kano
تأهيل مستشفى الدكتور طه حسين
Mr Muscle oven cleaner and Dr Martens safety boots
DR SCANNER AND MR SCANNER INSTALLATION
Supply of Contact Lenses For Tygerberg Hospital
SUPPLY AND DELIVERY OF CONTACT CLEANER
Supply And Delivery Of Mobile Clinics 2024/2025
Call Centre Equipment
Attention Deficit Disorder Medicine
Contact: Supply Chain Management Unit, 2nd floor
Контактное лицо: Отдел закупок, кабинет 12
Ответственный: начальник отдела закупок Министерства здравоохранения
Контактна особа: Тендерний комітет
Капитальный ремонт школы имени Токтогула и улица Г. Айтиева
Ремонт вулиці Тараса Шевченка, ТОВ Пані Марія
Contact: Nelson Mandela Bay Municipality
Contact: SANRAL
Consultant: Aurecon
Buyer: City of Cape Town
Messrs Deloitte and Touche
MS PIPES, MS Office and M.S. bars
Mme la Directrice
Hon. Minister of Works will open it
REQUISICIÓN NÚMERO 004 005 006 007 008 009
BID 0212345678 for 2023/2024 closing 01/02/2024 - 05/03/2024
5/1/1-26/27 -166 POACSAGRIECON
VO 010-2026/2027 and T 11/26/27 and RFQ GSM057/2026
R 1 200 000.00 and R12 345 678, XOF 77 123 456 789, 12 345 678 FCFA
Budget 2024-2025 2025-2026; CPV 45233140; UNSPSC 72141000
GPS -26.2041028 28.0473051 lot 12 34 56 78
ISBN 978-0-306-40615-7, PO Box 1234, Pretoria 0001
Contract No. 2024/001/0123456789, account number 62012345678
From 08:00 to 16:30, 01.02.2024
"""  # noqa: RUF001


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.rule("GATE-8")
@every("marked", lines(WITH_PERSONS))
def test_contact_persons_are_cut_and_the_rest_stays(marked: str) -> None:
    parts = marked.replace("}", "{").split("{")
    expected = "".join(part if number % 2 == 0 else CUT for number, part in enumerate(parts))
    assert Secrets().cut("".join(parts)) == expected


@pytest.mark.rule("GATE-8")
@every("text", lines(STAYS))
def test_bodies_places_goods_and_other_numbers_stay(text: str) -> None:
    assert Secrets().cut(text) == text


NATIONAL = """
DZ 0551 23 45 67|AO 923 123 456|BJ 01 97 12 34 56|BW 71 234 567
BF 70 12 34 56|BI 79 56 12 34|CV 991 12 34|CM 6 77 12 34 56
CF 75 12 34 56|TD 66 12 34 56|KM 321 23 45|CG 06 612 34 56
CD 0812 345 678|CI 07 07 12 34 56|DJ 77 83 10 01|EG 0100 123 4567
GQ 222 123 456|ER 07 123 456|SZ 7612 3456|ET 0911 234 567
GA 06 03 12 34|GM 301 2345|GH 0244 123 456|GN 622 12 34 56
GW 955 012 345|KE 0712 345 678|LS 5812 3456|LR 0770 123 456
LY 0912 345 678|MG 034 12 345 67|MW 0999 123 456|ML 76 12 34 56
MR 22 12 34 56|MU 5712 3456|MA 0612-345678|MZ 82 123 4567
NA 081 123 4567|NE 93 12 34 56|NG 0803 123 4567|RW 0788 123 456
ST 981 2345|SN 77 123 45 67|SC 251 0123|SL 076 123456
SO 061 2345678|ZA 082 555 1234|SS 0912 345 678|SD 0912 345 678
TZ 0712 345 678|TG 90 12 34 56|TN 20 123 456|UG 0772 123 456|ZM 0977 123 456|ZW 0772 123 456
"""
SPELLINGS: list[Callable[[str], str]] = [
    lambda number: number,
    lambda number: number.replace(" ", ""),
    lambda number: number.replace(" ", "-"),
    lambda number: number.replace(" ", "."),
    lambda number: f"({number.split()[0]}) {' '.join(number.split()[1:])}",
]
CODES = """
DZ 213|AO 244|BJ 229|BW 267|BF 226|BI 257|CV 238|CM 237|CF 236|TD 235
KM 269|CG 242|CD 243|CI 225|DJ 253|EG 20|GQ 240|ER 291|SZ 268|ET 251|GA 241
GM 220|GH 233|GN 224|GW 245|KE 254|LS 266|LR 231|LY 218|MG 261|MW 265
ML 223|MR 222|MU 230|MA 212|MZ 258|NA 264|NE 227|NG 234|RW 250|ST 239|SN 221
SC 248|SL 232|SO 252|ZA 27|SS 211|SD 249|TZ 255|TG 228|TN 216|UG 256|ZM 260|ZW 263
"""
WITH_ZERO = "CG CI BJ GA".split()


def by_country(table: str) -> dict[str, str]:
    return {entry[:2]: entry[3:] for entry in table.replace("\n", "|").split("|") if entry}


@every(("country", "number"), by_country(NATIONAL).items())
def test_the_numbers_of_every_african_country_are_cut_in_every_spelling(country: str, number: str) -> None:
    spelled = {spell(number.replace("-", " ")) for spell in SPELLINGS if " " in number or "-" in number}
    code = by_country(CODES)[country]
    for form in spelled | {number}:
        assert Secrets().cut(f"Tel: {form} for details") == f"Tel: {CUT} for details", form
        assert Secrets().cut(f"Contact us at {form}, or come") == f"Contact us at {CUT}, or come", form
        abroad = (
            form if country in WITH_ZERO else form.replace("0", "", 1) if form.lstrip("(")[0] == "0" else form
        )
        for prefix in (f"+{code} ", f"+{code}", f"00{code} ", f"(+{code}) "):
            assert Secrets().cut(f"It is {prefix}{abroad} now") == f"It is {CUT} now", prefix + abroad


@every(
    "number",
    ["+44 20 7946 0958", "+1 (202) 555-0143", "+86 10 6552 9988", "00 33 1 42 68 53 00", "+971-4-123-4567"],
)
def test_numbers_of_other_countries_are_cut_with_their_code(number: str) -> None:
    assert Secrets().cut(f"Ask {number} before noon") == f"Ask {CUT} before noon"


@pytest.mark.parametrize(
    "pump",
    deep_after(
        5,
        [
            "a",
            "a.",
            "@",
            "a@a ",
            "Mr ",
            "Mr Zulu and ",
            "Contact: ",
            "0",
            "0 ",
            "1/",
            "+27 ",
            "contact 0825551234 ",
            "Zulu, ",
            "S. ",
            "د. ",
        ],
    ),
)
def test_the_cost_of_a_long_text_is_linear(pump: str) -> None:
    def seconds(size: int) -> float:
        text = pump * (size // len(pump))
        began = time.process_time()
        Secrets().cut(text)
        return time.process_time() - began

    seconds(1000)
    size = rounds(3_000, 15_000)
    assert min(seconds(4 * size), seconds(4 * size)) < 12 * max(0.05, seconds(size), seconds(size))
